// Reports as SARIF.
#include "report/sarif.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "report/fingerprint.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLocations = 100;  // a limit of the services that read it

std::string_view level(Severity severity) {
  switch (severity) {
    case Severity::kCertain:
    case Severity::kUndefinedBehaviour:
    case Severity::kContractViolation:
      return "error";
    case Severity::kPotential:
    case Severity::kUnsafe:
      return "warning";
    case Severity::kNote:
      return "note";
  }
  return "none";
}

// URI references: what is not unreserved in a path is escaped, byte by byte.
std::string uri_of(std::string_view path) {
  std::string uri;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

Json rule(const std::string& id) {
  Json out{{"id", id}};
  const FindingClass* const known = find_class(id);
  if (known == nullptr) return out;
  out["shortDescription"]["text"] = known->means;
  out["fullDescription"]["text"] = known->arises;
  out["help"]["text"] = known->fixed;
  return out;
}

Json locations(const Finding& finding) {
  Json list = Json::array();
  for (const Evidence& evidence : finding.evidence) {
    if (list.size() == kMostLocations) break;
    Json place{{"artifactLocation", {{"uri", uri_of(evidence.file)}}}};
    place["region"]["startLine"] = std::max<std::uint32_t>(evidence.line, 1);
    Json location = Json::object();
    location["physicalLocation"] = std::move(place);
    list.push_back(std::move(location));
  }
  return list;
}

}  // namespace

std::string report_sarif(const Report& report) {
  std::vector<std::string> rule_ids;
  Json results = Json::array();
  for (const Finding& finding : report.findings) {
    auto known = std::ranges::find(rule_ids, finding.finding_class);
    if (known == rule_ids.end()) known = rule_ids.insert(rule_ids.end(), finding.finding_class);
    Json result{{"ruleId", finding.finding_class},
                {"ruleIndex", known - rule_ids.begin()},
                {"level", level(finding.severity)}};
    std::string text =
        fmt::format("{}: {}. {}", verdict_name(finding.verdict), finding.title, finding.explanation);
    if (!finding.fix.empty()) text += fmt::format(". Fix: {}", finding.fix);
    result["message"]["text"] = std::move(text);
    if (Json places = locations(finding); !places.empty()) result["locations"] = std::move(places);
    result["partialFingerprints"]["lockstep/v1"] = finding_fingerprint(finding);
    results.push_back(std::move(result));
  }
  Json rules = Json::array();
  for (const std::string& id : rule_ids) rules.push_back(rule(id));
  Json driver{{"name", "lockstep"}, {"version", LOCKSTEP_VERSION}};
  driver["rules"] = std::move(rules);
  Json run = Json::object();
  run["tool"]["driver"] = std::move(driver);
  run["results"] = std::move(results);
  Json out{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}};
  out["runs"] = Json::array({std::move(run)});
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace lockstep
