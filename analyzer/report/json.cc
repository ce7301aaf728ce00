// The report as JSON. Keys of the contract are always written, null where nothing is known; further ones only
// when set.
#include "report/json.h"

#include <nlohmann/json.hpp>

#include "report/tool.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json null_or(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

template <class T>
Json null_or(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void set_if(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

template <class T>
void set_if(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

void set_if(Json& object, const char* key, std::uint32_t line) {
  if (line != 0) object[key] = line;
}

Json frame_json(const Frame& frame) {
  Json json = Json::object();
  set_if(json, "file", frame.file);
  set_if(json, "function", frame.function);
  set_if(json, "line", frame.line);
  return json;
}

// Members that the finding names already are not repeated: thousands of ranks may wait on a communicator of
// thousands.
Json operation_json(const OperationView& operation, const Finding& finding) {
  Json json{{"rank", operation.rank}, {"op", operation.op}, {"communicator", operation.communicator}};
  const auto& named = finding.communicator;
  const bool is_named = named && named->name == operation.communicator && named->ranks == operation.members;
  if (!operation.members.empty() && !is_named) json["ranks"] = operation.members;
  set_if(json, "seq", operation.seq);
  set_if(json, "count", operation.count);
  set_if(json, "datatype", operation.datatype);
  set_if(json, "redop", operation.redop);
  set_if(json, "peer", operation.peer);
  set_if(json, "payload", operation.payload);
  set_if(json, "label", operation.label);
  for (const Frame& frame : operation.site) json["site"].push_back(frame_json(frame));
  set_if(json, "state", operation.state);
  set_if(json, "native_op", operation.native_op);
  set_if(json, "native_seq", operation.native_seq);
  set_if(json, "file", operation.file);
  set_if(json, "line", operation.line);
  return json;
}

Json counts_json(const CallCounts& counts) {
  Json json{{"communicator", counts.communicator}};
  if (!counts.members.empty()) json["ranks"] = counts.members;
  set_if(json, "call_site", counts.call_site);
  Json by_rank = Json::object();
  for (const auto& [rank, calls] : counts.by_rank) by_rank[std::to_string(rank)] = calls;
  json["by_rank"] = std::move(by_rank);
  return json;
}

Json wait_json(const WaitFor& wait, const Finding& finding) {
  Json json{
      {"rank", wait.rank},
      {"operation", wait.operation.op.empty() ? Json(nullptr) : operation_json(wait.operation, finding)},
      {"waits_for", wait.waits_for}};
  set_if(json, "why", wait.why);
  return json;
}

template <class Range, class Convert>
Json array_of(const Range& range, Convert convert) {
  Json json = Json::array();
  for (const auto& element : range) json.push_back(convert(element));
  return json;
}

Json communicator_json(const std::optional<Finding::CommunicatorView>& communicator) {
  if (!communicator) return nullptr;
  return {{"id", communicator->id}, {"name", communicator->name}, {"ranks", communicator->ranks}};
}

Json position_json(const std::optional<Finding::Position>& position) {
  if (!position) return nullptr;
  return {{"seq", position->seq},
          {"op", position->op},
          {"native_seq", null_or(position->native_seq)},
          {"native_op", null_or(position->native_op)}};
}

Json evidence_json(const Evidence& evidence) {
  return {{"file", evidence.file}, {"line", evidence.line == 0 ? Json(nullptr) : Json(evidence.line)}};
}

Json finding_json(const Finding& finding) {
  Json json{{"verdict", verdict_name(finding.verdict)},
            {"class", finding.finding_class},
            {"severity", severity_name(finding.severity)},
            {"title", finding.title},
            {"models", finding.models},
            {"communicator", communicator_json(finding.communicator)},
            {"position", position_json(finding.position)},
            {"divergent_ranks", finding.divergent_ranks}};
  json["divergent_meaning"] =
      finding.divergent_meaning ? Json(divergent_meaning_name(*finding.divergent_meaning)) : Json(nullptr);
  if (!finding.operations.empty())
    json["operations"] =
        array_of(finding.operations, [&](const auto& side) { return operation_json(side, finding); });
  json["counts"] = array_of(finding.counts, counts_json);
  json["wait_for"] = array_of(finding.wait_for, [&](const auto& wait) { return wait_json(wait, finding); });
  if (finding.wait_for_omitted != 0) json["wait_for_omitted"] = finding.wait_for_omitted;
  json["explanation"] = finding.explanation;
  json["fix"] = finding.fix;
  json["evidence"] = array_of(finding.evidence, evidence_json);
  return json;
}

Json suspect_json(const Suspect& suspect) {
  const Place& place = suspect.place;
  Json json{{"rank", suspect.rank},
            {"role", suspect.role},
            {"confidence", confidence_name(suspect.confidence)},
            {"host", null_or(place.host)},
            {"pid", place.pid == 0 ? Json(nullptr) : Json(place.pid)},
            {"local_rank", null_or(place.local_rank)},
            {"device", null_or(place.device)}};
  set_if(json, "pod", suspect.pod);
  return json;
}

}  // namespace

std::string report_json(const Report& report) {
  Json json{
      {"schema", "lockstep-report/1"}, {"tool", tool_name()}, {"verdict", verdict_name(report.verdict)}};
  set_if(json, "summary", report.summary);
  json["run"] = {{"name", report.run.name}, {"attempt", report.run.attempt}, {"others", report.run.others}};
  json["findings"] = array_of(report.findings, finding_json);
  json["suspects"] = array_of(report.suspects, suspect_json);
  json["action"] = action_name(report.action);
  json["action_ranks"] = report.action_ranks;
  if (!report.action_hosts.empty()) json["action_hosts"] = report.action_hosts;
  json["progress"] = {{"state", progress_state_name(report.progress.state)},
                      {"stalled_for_s", report.progress.stalled_for_s}};
  json["next_evidence"] = report.next_evidence;
  json["input_quality"] = {{"ranks_expected", null_or(report.input_quality.ranks_expected)},
                           {"ranks_seen", report.input_quality.ranks_seen},
                           {"complete", report.input_quality.complete},
                           {"warnings", report.input_quality.warnings}};
  constexpr int kIndent = 2;
  constexpr bool kAsciiOnly = true;
  return json.dump(kIndent, ' ', kAsciiOnly, Json::error_handler_t::replace) + '\n';
}

}  // namespace lockstep
