// See the header.
#include "read/ras_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "base/rank_ranges.h"
#include "read/log_reader.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr std::size_t kMostRanks = std::size_t{1} << 20;

/// NCCL 2.28.9 forgets the comma between some members: a value with `"` or `{` behind it is followed by one.
std::string with_commas(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size() + text.size() / 64);
  bool in_string = false, after_value = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      repaired += c;
      if (c == '\\' && i + 1 < text.size()) repaired += text[++i];
      else if (c == '"') in_string = false, after_value = true;
      continue;
    }
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      repaired += c;
      continue;
    }
    if (after_value && (c == '"' || c == '{')) repaired += ',';
    in_string = c == '"';
    after_value = !in_string && c != ',' && c != ':' && c != '{' && c != '[';
    repaired += c;
  }
  return repaired;
}

std::string text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end()) return {};
  return at->is_string() ? at->get<std::string>().substr(0, 100) : at->is_number_integer() ? std::to_string(at->get<std::int64_t>()) : std::string{};
}

std::int64_t number_of(const Json& object, const char* key, std::int64_t otherwise) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : otherwise;
}

bool is_set(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

const Json& list_of(const Json& object, const char* key) {
  static const Json empty = Json::array();
  const auto at = object.find(key);
  return at != object.end() && at->is_array() ? *at : empty;
}

std::string process_of(const Json& rank) { return fmt::format("{}:{}:{}", text_of(rank, "host"), number_of(rank, "pid", 0), number_of(rank, "cuda_dev", -1)); }

class RasReader {
 public:
  RasReader(const Json& answer, ParsedLog& log) : answer_(answer), log_(log) {}

  void read() {
    find_world();
    for (const Json& communicator : list_of(answer_, "communicators")) {
      if (!communicator.is_object()) continue;
      const std::string hash = text_of(communicator, "hash");
      read_missing(communicator, hash);
      const bool differs = read_counts(communicator, hash);
      if (!differs) {
        keep({.kind = ReportedKind::kHint, .text = fmt::format("communicator {} of {} ranks: all launched alike: OK", hash, list_of(communicator, "ranks").size()), .op = "RAS"});
      }
    }
  }

 private:
  /// The rank in the job is that in the one communicator that is larger than all others.
  void find_world() {
    const Json* world = nullptr;
    std::size_t most = 0, with_most = 0;
    for (const Json& communicator : list_of(answer_, "communicators")) {
      if (!communicator.is_object()) continue;
      const std::size_t size = list_of(communicator, "ranks").size() + list_of(communicator, "missing_ranks").size();
      if (size == most) ++with_most;
      if (size <= most) continue;
      most = size;
      with_most = 1;
      world = &communicator;
    }
    if (world == nullptr || with_most != 1 || most > kMostRanks) return;
    for (const char* key : {"ranks", "missing_ranks"}) {
      for (const Json& rank : list_of(*world, key)) {
        if (!rank.is_object()) continue;
        const std::int64_t number = number_of(rank, "rank", -1);
        if (number < 0 || number > 0x7ffffffe) continue;
        const auto job_rank = static_cast<std::int32_t>(number);
        job_ranks_.try_emplace(process_of(rank), job_rank);
        ReportedPlace place{.place = {.host = text_of(rank, "host"), .pid = std::max<std::int64_t>(number_of(rank, "pid", 0), 0)}};
        if (const std::int64_t device = number_of(rank, "cuda_dev", -1); device >= 0) place.place.device = fmt::format("GPU {}", device);
        log_.places.try_emplace(job_rank, std::move(place));
      }
    }
  }

  std::optional<std::int32_t> job_rank(const Json& rank) const {
    const auto known = job_ranks_.find(process_of(rank));
    return known == job_ranks_.end() ? std::nullopt : std::optional(known->second);
  }

  void read_missing(const Json& communicator, const std::string& hash) {
    for (const Json& rank : list_of(communicator, "missing_ranks")) {
      if (!rank.is_object()) continue;
      const bool dead = is_set(rank, "considered_dead");
      ReportedEvent event{.kind = dead ? ReportedKind::kEvent : ReportedKind::kHint, .rank = job_rank(rank)};
      event.text = fmt::format("RAS: rank {} of communicator {} ({} process {}) {}", number_of(rank, "rank", -1), hash, text_of(rank, "host"), number_of(rank, "pid", 0),
                               dead ? "is considered dead" : "does not answer");
      event.finding_class = "peer_crashed";
      event.proves = dead;
      keep(std::move(event));
    }
  }

  /// By function, the ranks that launched so many; true where they differ.
  bool read_counts(const Json& communicator, const std::string& hash) {
    std::map<std::string, std::map<std::int64_t, std::vector<const Json*>>> by_function;
    for (const Json& rank : list_of(communicator, "ranks")) {
      const auto counts = rank.is_object() ? rank.find("collective_counts") : rank.end();
      if (!rank.is_object() || counts == rank.end() || !counts->is_object()) continue;
      for (const auto& [function, launched] : counts->items()) {
        if (launched.is_number_integer()) by_function[function.substr(0, 60)][launched.get<std::int64_t>()].push_back(&rank);
      }
    }
    bool differs = false;
    for (const auto& [function, parties] : by_function) {
      if (parties.size() < 2) continue;
      differs = true;
      const auto largest = std::ranges::max_element(parties, {}, [](const auto& party) { return party.second.size(); });
      const bool has_largest = std::ranges::count_if(parties, [&](const auto& party) { return party.second.size() == largest->second.size(); }) == 1;
      for (const auto& [launched, ranks] : parties) {
        ReportedEvent event{.kind = ReportedKind::kCount, .group = hash, .op = function, .seq = launched, .count = static_cast<std::int64_t>(ranks.size())};
        std::string processes;
        for (const Json* rank : ranks) {
          const auto known = job_rank(*rank);
          if (known && (!has_largest || launched != largest->first)) event.ranks.push_back(*known);
          if (!known && processes.size() < 200) processes += fmt::format(" {}", process_of(*rank));
        }
        std::ranges::sort(event.ranks);
        event.text = fmt::format("{} rank{} launched up to {} operation {}{}{}", ranks.size(), ranks.size() == 1 ? "" : "s", function, launched,
                                 event.ranks.empty() ? "" : " (" + ranks_text(event.ranks) + ")", processes);
        keep(std::move(event));
      }
    }
    return differs;
  }

  void keep(ReportedEvent event) {
    constexpr std::size_t kMostEvents = 10'000;
    if (log_.events.size() < kMostEvents) log_.events.push_back(std::move(event));
    else ++log_.dropped;
  }

  const Json& answer_;
  ParsedLog& log_;
  std::map<std::string, std::int32_t> job_ranks_;  // by host, process and device
};

}  // namespace

bool looks_like_ras_json(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] != '{') return false;
  return head.find("\"communicators\"") != std::string_view::npos &&
         (head.find("\"nccl_version\"") != std::string_view::npos || head.find("\"collective_counts\"") != std::string_view::npos ||
          head.find("\"missing_ranks\"") != std::string_view::npos);
}

Result<std::unique_ptr<ParsedEvidence>> parse_ras_json(const EvidenceFile& file) {
  if (file.contents.size() > kMostBytes) {
    return Error{ErrorCode::kUnsupported, fmt::format("{}: more than {} bytes are no answer of RAS", file.path, kMostBytes)};
  }
  const Json answer = Json::parse(with_commas(file.contents), nullptr, false);
  if (answer.is_discarded() || !answer.is_object()) {
    return Error{ErrorCode::kMalformed, fmt::format("{}: an answer of NCCL's RAS that is no JSON, even with the commas that NCCL forgets", file.path)};
  }
  auto log = std::make_unique<ParsedLog>();
  log->path = file.path;
  RasReader(answer, *log).read();
  return std::unique_ptr<ParsedEvidence>(std::move(log));
}

}  // namespace lockstep
