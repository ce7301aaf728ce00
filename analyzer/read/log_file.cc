// See the header. A DFA over the words of all grammars (log_trigger) passes over text that says nothing; only the lines that it
// stops at are cleaned and matched.
#include "read/log_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "read/flight_ranks.h"
#include "read/foreign_file.h"
#include "read/log_calls.h"
#include "read/log_grammars.h"
#include "read/log_line.h"

namespace lockstep {
namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 10;
constexpr std::size_t kMostEvents = 100'000;
constexpr std::size_t kMostOfAKind = 512;   // of one kind by one rank; the latest are kept of kCalls
constexpr int kMostGroups = 12;

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

struct ParsedLog final : ParsedEvidence {
  std::string path{};
  std::vector<ReportedEvent> events{};
  std::size_t dropped = 0;
  LogCalls calls{};
};

struct CompiledGrammar {
  const LogGrammar* grammar = nullptr;
  std::unique_ptr<RE2> pattern{};
};

const std::vector<CompiledGrammar>& compiled_grammars() {
  static const std::vector<CompiledGrammar> compiled = [] {
    std::vector<CompiledGrammar> all;
    for (const LogGrammar& grammar : log_grammars()) all.push_back({&grammar, std::make_unique<RE2>(grammar.pattern, RE2::Quiet)});
    return all;
  }();
  return compiled;
}

class LogReader {
 public:
  LogReader(std::string_view contents, ParsedLog& log) : contents_(contents), log_(log) {
    // A log of one rank often says so in its name only.
    const std::string_view name = std::string_view(log.path).substr(log.path.find_last_of('/') + 1);
    if (name.find("rank") != std::string_view::npos) {
      const auto numbers = numbers_of_name(log.path);
      if (!numbers.empty()) file_rank_ = numbers.front();
    }
  }

  void read() {
    std::size_t at = 0;
    while (at < contents_.size()) {
      const re2::StringPiece rest = piece(contents_.substr(at));
      re2::StringPiece found;
      if (!log_trigger().Match(rest, 0, rest.size(), RE2::UNANCHORED, &found, 1)) break;
      const std::size_t hit = at + static_cast<std::size_t>(found.data() - rest.data());
      const std::size_t from = line_start(at, hit);
      line_ += static_cast<std::uint32_t>(std::count(contents_.begin() + static_cast<std::ptrdiff_t>(at), contents_.begin() + static_cast<std::ptrdiff_t>(from), '\n'));
      const std::size_t end = std::min(contents_.find('\n', hit), contents_.size());
      ++line_;
      // A line without an end may hold a whole log: what is around the hit.
      const std::size_t begin = hit - from > kLongestLine / 2 ? hit - kLongestLine / 2 : from;
      read_line(contents_.substr(begin, std::min(end - begin, kLongestLine)));
      at = end + 1;
      if (in_missing_ranks_) read_missing_ranks(at);
    }
  }

 private:
  /// The lines behind "Missing ranks:" have no word that all of them share.
  void read_missing_ranks(std::size_t& at) {
    while (at < contents_.size()) {
      const std::size_t end = std::min(contents_.find('\n', at), contents_.size());
      if (!read_horovod_map(clean_log_line(contents_.substr(at, std::min(end - at, kLongestLine)), buffer_), line_ + 1)) break;
      ++line_;
      at = end + 1;
    }
    in_missing_ranks_ = false;
  }

  std::size_t line_start(std::size_t floor, std::size_t hit) const {
    const std::size_t newline = hit == 0 ? std::string_view::npos : contents_.rfind('\n', hit - 1);
    return newline == std::string_view::npos || newline < floor ? floor : newline + 1;
  }

  void read_line(std::string_view raw) {
    const LogLine line = clean_log_line(raw, buffer_);
    std::optional<std::int32_t> rank = line.rank ? line.rank : file_rank_;
    // The rank in a group, which is the job's rank only where nothing else is known.
    static const RE2 kGroupRank(R"(\[(?:PG [^\]]*? ?)?Rank (\d{1,7})\])");
    int group_rank = -1;
    if (!rank && RE2::PartialMatch(piece(line.text), kGroupRank, &group_rank)) rank = group_rank;
    if (log_.calls.read(line.text, line_, rank)) return;
    if (line.text.find("Missing ranks") != std::string_view::npos) {
      in_missing_ranks_ = true;
      return;
    }
    if (read_section(line.text) || read_desync(line.text)) return;
    // torchelastic prints the rank in one line and how it ended in the next but one.
    static const RE2 kElasticRank(R"(^\s*rank\s*: (\d{1,7}) \(local_rank)");
    if (int elastic = -1; RE2::PartialMatch(piece(line.text), kElasticRank, &elastic)) {
      elastic_rank_ = {line_, elastic};
      return;
    }
    if (!rank && elastic_rank_.first != 0 && line_ - elastic_rank_.first <= 3) rank = elastic_rank_.second;
    for (const CompiledGrammar& compiled : compiled_grammars()) {
      re2::StringPiece rest = piece(line.text);
      bool any = false;
      do {
        std::array<re2::StringPiece, kMostGroups> groups;
        const int count = std::min(compiled.pattern->NumberOfCapturingGroups() + 1, kMostGroups);
        if (!compiled.pattern->Match(rest, 0, rest.size(), RE2::UNANCHORED, groups.data(), count)) break;
        ReportedEvent event{.line = line_, .rank = rank};
        const LogFields fields(compiled.pattern->NamedCapturingGroups(), std::span(groups).first(static_cast<std::size_t>(count)));
        if (compiled.grammar->fill(fields, event)) {
          // Stacks of several ranks in one file stand under headings.
          if (!event.rank && (event.kind == ReportedKind::kStack || event.op == "stack")) event.rank = section_rank_;
          // What went wrong is read best in its whole line.
          const bool whole_line = event.kind == ReportedKind::kEvent || event.kind == ReportedKind::kHint;
          const auto behind = static_cast<std::size_t>(groups[0].data() - line.text.data());
          event.text = excerpt_of(whole_line && behind < 120 ? line.text : fields.whole());
          keep(std::move(event));
          any = true;
        }
        rest.remove_prefix(static_cast<std::size_t>(groups[0].data() + groups[0].size() - rest.data()));
      } while (compiled.grammar->again && !rest.empty());
      if (any) return;
    }
  }

  /// "=== rank 3 ===", "==> dump_rank3.txt <==", "Rank 3:": a heading over what is of that rank.
  bool read_section(std::string_view text) {
    static const RE2 kHeading(R"(^(?:(?:==|##|--|\*\*)[=#*>-]*[^=#*]*?[Rr]ank[ _=:-]?(\d{1,7})\b[^=#*]*?(?:[=#*<-]{2,})?|[Rr]ank (\d{1,7}):?)\s*$)");
    int number = -1;
    re2::StringPiece marked, plain;
    if (!RE2::PartialMatch(piece(text), kHeading, &marked, &plain)) return false;
    if (!RE2::FullMatch(marked.empty() ? plain : marked, R"((\d+))", &number)) return false;
    section_rank_ = number;
    return true;
  }

  /// Torch's desync report lists by number who has started what: "#17 started ranks:" and then "[0, 1, 3] started ALLREDUCE".
  bool read_desync(std::string_view text) {
    static const RE2 kNumber(R"(^\s*#(\d+) (?:started|finished) ranks:)");
    static const RE2 kStarted(R"(^\s*\[(\d[\d, -]*)\] (started|finished) ([A-Z_]+)\s*$)");
    if (std::int64_t number = -1; RE2::PartialMatch(piece(text), kNumber, &number)) {
      desync_number_ = number;
      return true;
    }
    std::string ranks, state, op;
    if (desync_number_ < 0 || !RE2::PartialMatch(piece(text), kStarted, &ranks, &state, &op)) return false;
    if (state == "finished") return true;
    for (const std::int32_t rank : ranks_in(ranks)) {
      keep({.kind = ReportedKind::kWaits, .line = line_, .rank = rank, .text = excerpt_of(text), .op = op, .seq = desync_number_});
    }
    return true;
  }

  /// Horovod from 0.17 on: "Missing ranks:" and then, by rank, the tensors that it has not submitted.
  bool read_horovod_map(const LogLine& line, std::uint32_t number_of_line) {
    static const RE2 kTensors(R"(^\[([^\[\]]+)\]\s*$)");
    static const RE2 kNumbered(R"(^(\d+)!?: \[([^\[\]]+)\]\s*$)");
    int number = -1;
    std::string tensors;
    if (!RE2::PartialMatch(piece(line.text), kNumbered, &number, &tensors)) {
      if (!line.number || !RE2::PartialMatch(piece(line.text), kTensors, &tensors)) return false;
      number = *line.number;
    }
    keep({.kind = ReportedKind::kAbsent, .line = number_of_line, .text = excerpt_of(line.text), .op = tensors.substr(0, tensors.find(',')), .ranks = {number}});
    return true;
  }

  static std::string excerpt_of(std::string_view text) {
    constexpr std::size_t kLongest = 320;
    return std::string(text.substr(0, kLongest));
  }

  void keep(ReportedEvent event) {
    const std::int32_t who = event.rank.value_or(-1);
    std::size_t& count = counts_[{event.kind, who}];
    if (event.kind == ReportedKind::kCalls) {
      // A schedule may be long: the last calls of each rank are kept, in a ring.
      std::vector<std::size_t>& ring = last_calls_[who];
      if (ring.size() == kMostOfAKind) {
        log_.events[ring[count++ % kMostOfAKind]] = std::move(event);
        return;
      }
      ring.push_back(log_.events.size());
    }
    if (++count > kMostOfAKind || log_.events.size() >= kMostEvents) {
      ++log_.dropped;
      return;
    }
    log_.events.push_back(std::move(event));
  }

  std::string_view contents_;
  ParsedLog& log_;
  std::string buffer_;
  std::uint32_t line_ = 0;
  std::optional<std::int32_t> file_rank_;
  bool in_missing_ranks_ = false;
  std::optional<std::int32_t> section_rank_;
  std::int64_t desync_number_ = -1;
  std::pair<std::uint32_t, std::int32_t> elastic_rank_{0, -1};  // line and rank
  std::map<std::pair<ReportedKind, std::int32_t>, std::size_t> counts_;
  std::map<std::int32_t, std::vector<std::size_t>> last_calls_;  // by rank: places in events
};

}  // namespace

bool looks_like_log(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || what_it_looks_like(head) != "text of no known form") return false;
  // Damaged JSON is told as that; collectors write logs as JSON lines too.
  return head[first] != '{' || RE2::PartialMatch(piece(head), log_trigger());
}

Result<std::unique_ptr<ParsedEvidence>> parse_log(const EvidenceFile& file) {
  auto log = std::make_unique<ParsedLog>();
  log->path = file.path;
  LogReader(file.contents, *log).read();
  return std::unique_ptr<ParsedEvidence>(std::move(log));
}

std::vector<std::optional<Error>> join_logs(std::vector<std::unique_ptr<ParsedEvidence>> parsed, JobIntake& intake) {
  std::vector<std::optional<Error>> failures(parsed.size());
  ReportedEvidence& reported = intake.reported();
  const bool has_job = intake.program_count() > 0;
  const auto says_something = [](const std::unique_ptr<ParsedEvidence>& one) {
    const auto& log = static_cast<const ParsedLog&>(*one);
    return !log.events.empty() || !log.calls.empty();
  };
  // Text that says nothing is a log of a job only where there is nothing else.
  const bool has_other = has_job || std::ranges::any_of(parsed, says_something);
  for (std::size_t i = 0; i < parsed.size(); ++i) {
    auto& log = static_cast<ParsedLog&>(*parsed[i]);
    if (has_other && !says_something(parsed[i])) {
      failures[i] = Error{ErrorCode::kUnreadable, fmt::format("{}: text of no known form", log.path)};
      continue;
    }
    const auto number = static_cast<std::uint32_t>(reported.files.size());
    reported.files.push_back(log.path);
    reported.dropped += log.dropped;
    for (ReportedEvent& event : log.events) {
      event.file = number;
      reported.events.push_back(std::move(event));
    }
    if (log.calls.empty() || has_job) continue;
    log.calls.add_programs(log.path, intake);
    if (const std::string last = log.calls.last_calls(); !last.empty()) {
      reported.events.push_back({.kind = ReportedKind::kHint, .file = number, .text = "last NCCL COLL lines: " + last});
    }
  }
  return failures;
}

}  // namespace lockstep
