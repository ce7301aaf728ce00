// The two encodings of a dump; see the header.
#include "read/flight_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "read/flight_entries.h"
#include "read/json_outline.h"
#include "read/pickle.h"
#include "read/tracking_iterator.h"

namespace lockstep {
namespace {

constexpr std::string_view kKeys[] = {"pg_config", "pg_status", "nccl_version", "comm_lib_version", "nccl_comm_state", "entries"};

/// What was read, or why it is nothing.
Result<std::unique_ptr<ParsedEvidence>> hand_out(std::unique_ptr<FlightDump> dump, const PlainBuilder& builder, FlightEntries& entries,
                                                 const std::string& problem, ErrorCode code) {
  entries.finish(builder.outermost(), builder);
  if (dump->entries == 0 && dump->groups.empty() && dump->status.empty()) {
    const std::string why = problem.empty() ? "a Flight Recorder dump without entries and groups" : problem;
    return Error{problem.empty() ? ErrorCode::kMalformed : code, fmt::format("{}: {}", dump->path, why)};
  }
  if (!problem.empty()) {
    dump->complete = false;
    dump->warnings.push_back(fmt::format("{}; the {} entries before it are used", problem, dump->entries));
  }
  return std::unique_ptr<ParsedEvidence>(std::move(dump));
}

/// nlohmann's events as moves of the stack machine.
class JsonDriver final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonDriver(PlainBuilder& builder) : builder_(builder) {}
  const std::string& problem() const { return problem_; }

  bool null() override { return add(builder_.push({})); }
  bool boolean(bool value) override { return add(builder_.push(PlainValue::of_bool(value))); }
  bool number_integer(number_integer_t value) override { return add(builder_.push(PlainValue::of_integer(value))); }
  bool number_unsigned(number_unsigned_t value) override {
    return add(builder_.push(value <= 0x7fffffffffffffffULL ? PlainValue::of_integer(static_cast<std::int64_t>(value)) : PlainValue{}));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(builder_.push(PlainValue::of_real(value))); }
  bool string(string_t& value) override { return add(builder_.push_copied_text(value)); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool key(string_t& value) override { return add(builder_.push_copied_text(value)); }
  bool start_object(std::size_t /*size*/) override { return add(builder_.push_container(PlainTag::kDictionary) && builder_.mark()); }
  bool start_array(std::size_t /*size*/) override { return add(builder_.push_container(PlainTag::kList) && builder_.mark()); }
  bool end_object() override { return add(builder_.set_marked()); }
  bool end_array() override { return add(builder_.append_marked()); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const nlohmann::json::exception& /*error*/) override {
    problem_ = "no JSON";
    return false;
  }

 private:
  bool add(bool done) {
    if (!done) problem_ = builder_.error();
    return done;
  }
  PlainBuilder& builder_;
  std::string problem_;
};

}  // namespace

bool looks_like_flight_pickle(std::string_view head) {
  if (head.size() < 2 || head[0] != '\x80' || head[1] < 2 || head[1] > 5) return false;
  // The key stands behind its length; which one comes first is up to the writer.
  return std::ranges::any_of(kKeys, [&](std::string_view key) { return head.substr(0, 4096).find(key) != std::string_view::npos; }) &&
         (head.find("profiling_name") != std::string_view::npos || head.find("pg_config") != std::string_view::npos ||
          head.find("pg_status") != std::string_view::npos);
}

bool looks_like_flight_json(std::string_view head) {
  const std::vector<OutlineKey> keys = outline_keys(head);
  const auto has = [&keys](std::string_view name) { return std::ranges::find(keys, name, &OutlineKey::name) != keys.end(); };
  if (has("pg_config") || has("pg_status")) return true;
  return has("entries") && head.find("\"profiling_name\"") != std::string_view::npos;
}

Result<std::unique_ptr<ParsedEvidence>> parse_flight_pickle(const EvidenceFile& file) {
  auto dump = std::make_unique<FlightDump>();
  dump->path = file.path;
  FlightEntries entries(*dump);
  PlainBuilder builder(entries);
  const auto stop = read_pickle(file.contents, builder);
  const ErrorCode code = stop && !stop->truncated ? ErrorCode::kUnsupported : ErrorCode::kMalformed;
  return hand_out(std::move(dump), builder, entries, stop ? stop->problem : std::string{}, code);
}

Result<std::unique_ptr<ParsedEvidence>> parse_flight_json(const EvidenceFile& file) {
  auto dump = std::make_unique<FlightDump>();
  dump->path = file.path;
  FlightEntries entries(*dump);
  PlainBuilder builder(entries);
  JsonDriver driver(builder);
  const char* const begin = file.contents.data();
  const char* const end = begin + file.contents.size();
  const char* reached = begin;
  std::string problem;
  const bool whole = nlohmann::json::sax_parse(TrackingIterator(begin, &reached), TrackingIterator(end, &reached), &driver,
                                               nlohmann::json::input_format_t::json, false);
  if (!whole) {
    const bool broke_off = reached == end && driver.problem() == "no JSON";
    problem = broke_off ? fmt::format("ends in the middle, at offset {}", file.contents.size())
                        : fmt::format("{} at offset {}", driver.problem(), reached - begin);
  }
  return hand_out(std::move(dump), builder, entries, problem, ErrorCode::kMalformed);
}

}  // namespace lockstep
