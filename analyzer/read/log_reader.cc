// See the header. A DFA over the words of all grammars (log_trigger) passes over text that says nothing; only the lines that it
// stops at are cleaned and matched.
#include "read/log_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "read/flight_ranks.h"
#include "read/log_grammars.h"
#include "read/log_stacks.h"

namespace lockstep {
namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 10;
constexpr std::size_t kMostEvents = 100'000;
constexpr std::size_t kMostOfAKind = 512;  // of one kind by one rank; the latest are kept of kCalls
constexpr std::size_t kMostPlaces = 65'536;
constexpr int kMostGroups = 12;

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

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

/// Lines that viewers break: how they begin, and what has to be there for them to be whole.
struct LongLine {
  RE2 begins, is_whole;
};

const std::array<LongLine, 19>& long_lines() {
  static const std::array<LongLine, 19> lines{{
      {RE2(R"(ProcessGroup\w+\.cpp:\d+\] |Watchdog caught|Work\w+\((?:SeqNum|OpType))"),
       RE2(R"(OpType=.*(?:ran for \d+ milliseconds before|timed out|raised the following async exception: .{40})|last completed (?:NCCL )?work: -?\d+(?:\D|$)|watchdog got stuck for \d+ sec|\] Running collective: .*(?:OpType=\w+\)|TensorDtypes=\w+,))")},
      {RE2(R"(\[PG [^\]]*(?:\]|$))"), RE2(R"(last completed (?:NCCL )?work: -?\d+(?:\D|$)|(?i:dumping|terminated with exception: \S|watchdog got stuck for \d+ sec|flight recorder))")},
      {RE2(R"(Detected mismatch between collectives on ranks|(?:running|calling) collective: CollectiveFi)"), RE2(R"(inconsistent collective: .*OpType=\w+(?:\)|.*TensorDtypes=\w+,)|but Rank \d+ is \w+ collective: (?:\w+\.|CollectiveFingerPrint\(.*OpType=\w+(?:\)|.*TensorDtypes=\w+,))|collective: CollectiveFingerPrint\([^()]*\)\. Error)")},
      {RE2(R"(Running collective: CollectiveFi|inconsistent collective: CollectiveFi)"), RE2(R"(OpType=\w+(?:\)|.*TensorDtypes=\w+,))")},
      {RE2(R"(\[Rank \d+\]: Ranks? \d|Rank \d+ successfully reached)"), RE2(R"(failed to pass monitoredBarrier in \d+ ms|monitoredBarrier, but received errors .*rank \d+)")},
      {RE2(R"(opCount [0-9a-f]+ sendbuff)"), RE2(R"(\[nranks=\d+\])")},
      {RE2(R"(NET/IB ?: Got)"), RE2(R"(completion .*(?:error \d+,|status=[\w(]+\)? opcode))")},
      {RE2(R"(params\[\d+\] in this process)"), RE2(R"(same param in process \d+)")},
      {RE2(R"(DDP expects same model)"), RE2(R"(inconsistent \d+ params)")},
      {RE2(R"(Stalled ops:|\[(?:missing|ready) ranks:)"), RE2(R"(\[(?:missing|ready) ranks: [\d, ]+\])")},
      {RE2(R"(Mismatched [A-Z]+ )"), RE2(R"(but another rank .*\.)")},
      {RE2(R"(workers have been waiting for|for the following ranks|ranks have not joined)"), RE2(R"(ranks to join .*call: \[[\d, ]+\]|collective operation: \[[\d, ]+\])")},
      {RE2(R"(coordination_service\w*\.cc|Task /job:)"), RE2(R"(heartbeat timeout)")},
      {RE2(R"(NCCL INFO .*\bcomm 0x[0-9a-f]+ rank \d)"), RE2(R"(- ?(?:Init|Abort|Destroy|Finalize|Revoke) (?:START|COMPLETE))")},
      {RE2(R"(NCCL WARN NET/OFI)"), RE2(R"(completed with error)")},
      {RE2(R"(Message from rank \d|MPIDI\w*\(\d+\))"), RE2(R"(truncated; \d+ bytes received but buffer size is \d+)")},
      {RE2(R"(A worker died or was killed|worker process has died|potential root causes)"), RE2(R"(or other unexpected errors)")},
      {RE2(R"((?:^|\s)File "/)"), RE2(R"(", line \d+,? in [\w<])")},
      {RE2(R"(error msg: Culprit)"), RE2(R"((?:found .*'|\.\.\.)\s*$)")},
  }};
  return lines;
}

std::string excerpt_of(std::string_view text) {
  constexpr std::size_t kLongest = 320;
  return std::string(text.substr(0, kLongest));
}

/// Without "[E1122 06:40:00.504952916 ProcessGroupNCCL.cpp:630] ", which says when and in which line of torch.
std::string_view without_head(std::string_view text) {
  static const RE2 kHead(R"(^\s*\[[EWIFC]\d*[^\]\[]*\.(?:cpp|cc|hpp|h|ts):\d+\] )");
  re2::StringPiece rest = piece(text);
  RE2::Consume(&rest, kHead);
  return {rest.data(), rest.size()};
}

/// "[E1122 06:40:00.504952916 ": the month is not padded, the day is. A time of nothing but zeros was blotted out.
int day_of(std::string_view text) {
  static const RE2 kHead(R"(\[[EWIF](\d{1,2})(\d\d) (\d\d:\d\d:\d\d)[. ])");
  int month = 0, day = 0;
  re2::StringPiece time;
  if (!RE2::PartialMatch(piece(text), kHead, &month, &day, &time) || time == "00:00:00") return 0;
  return month >= 1 && month <= 12 && day >= 1 && day <= 31 ? 100 * month + day : 0;
}

}  // namespace

LogReader::LogReader(ParsedLog& log) : log_(log) {
  // A log of one rank often says so in its name only.
  const std::string_view name = std::string_view(log.path).substr(log.path.find_last_of('/') + 1);
  const bool is_told = name.find_last_not_of("0123456789") != std::string_view::npos && name[name.find_last_not_of("0123456789")] == '=' && name.back() != '=';
  if (is_told || name.find("rank") != std::string_view::npos) {
    const auto numbers = numbers_of_name(log.path);
    if (!numbers.empty()) file_rank_ = numbers.front();
  }
}

std::size_t LogReader::feed(std::string_view text, bool is_last) {
  const auto count_lines = [&](std::size_t from, std::size_t to) {
    return static_cast<std::uint32_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(from), text.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
  };
  // Only whole lines, unless a line has no end.
  std::size_t size = text.size();
  if (!is_last) {
    const std::size_t newline = text.rfind('\n');
    constexpr std::size_t kLongEnough = std::size_t{1} << 20;
    if (newline != std::string_view::npos) size = newline + 1;
    else if (text.size() < kLongEnough) return 0;
  }
  std::size_t at = in_missing_ranks_ ? read_missing_ranks(text.substr(0, size), 0) : 0;
  while (at < size) {
    const re2::StringPiece rest = piece(text.substr(at, size - at));
    re2::StringPiece found;
    if (!log_trigger().Match(rest, 0, rest.size(), RE2::UNANCHORED, &found, 1)) break;
    const std::size_t hit = at + static_cast<std::size_t>(found.data() - rest.data());
    const std::size_t newline = hit == 0 ? std::string_view::npos : text.rfind('\n', hit - 1);
    Line line{.begin = newline == std::string_view::npos || newline < at ? at : newline + 1, .end = std::min(text.find('\n', hit), size)};
    // A line without an end may hold a whole log: what is around the hit.
    if (hit - line.begin > kLongestLine / 2) line.begin = hit - kLongestLine / 2;
    const std::string_view whole = whole_line(text.substr(0, size), is_last, line);
    line_ += count_lines(at, line.begin);
    if (line.end == kNeedsMore && line.begin > 0) return line.begin;
    if (line.end == kNeedsMore) line.end = std::min(text.find('\n', hit), size);
    ++line_;
    behind_ = text.substr(std::min(line.end + 1, size), size - std::min(line.end + 1, size));
    read_line(whole);
    line_ += line.joined;
    at = std::min(line.end + 1, size);
    if (in_missing_ranks_) at = read_missing_ranks(text.substr(0, size), at);
  }
  line_ += count_lines(std::min(at, size), size);
  if (is_last && finished_.line != 0) keep(std::exchange(finished_, {}));
  return size;
}

std::string_view LogReader::whole_line(std::string_view text, bool is_last, Line& line) {
  const std::string_view first = text.substr(line.begin, std::min(line.end - line.begin, kLongestLine));
  const auto open = std::ranges::find_if(long_lines(), [&](const LongLine& kind) { return RE2::PartialMatch(piece(first), kind.begins); });
  if (open == long_lines().end() || RE2::PartialMatch(piece(first), open->is_whole)) return first;
  constexpr std::uint32_t kMostLines = 12;
  std::string direct(first), spaced(first);
  std::size_t end = line.end;
  for (std::uint32_t n = 1; n <= kMostLines; ++n) {
    if (end >= text.size() || end + 1 >= text.size()) {
      if (!is_last && n == 1 && end + 1 >= text.size()) line.end = kNeedsMore;
      return first;
    }
    std::size_t next_end = std::min(text.find('\n', end + 1), text.size());
    std::string_view next = text.substr(end + 1, std::min(next_end - end - 1, kLongestLine));
    if (!next.empty() && next.back() == '\r') next.remove_suffix(1);
    std::string scratch;
    // What has a prefix of its own, or begins as these lines do, is a line by itself.
    static const RE2 kBegins(R"(^\s*(?:\[(?:PG|[EWIF]\d* ?)|Traceback|what\(\)|File "|[\w.-]+:\d+:\d+ \[\d+\])|\[[Rr]ank ?\d+\])");
    if (next.empty() || clean_log_line(next, scratch).has_prefix || RE2::PartialMatch(piece(next), kBegins)) return first;
    while (!direct.empty() && direct.back() == '\r') direct.pop_back();
    while (!spaced.empty() && spaced.back() == '\r') spaced.pop_back();
    const std::string_view rest = next.starts_with('>') ? clean_log_line(next, scratch).text : next;
    direct += rest;
    spaced += ' ';
    spaced += rest;
    end = next_end;
    // Broken in the middle of a word, or where a space was.
    for (std::string* joined : {&direct, &spaced}) {
      if (!RE2::PartialMatch(piece(*joined), open->is_whole)) continue;
      joined_ = std::move(*joined);
      line.end = end;
      line.joined = n;
      return joined_;
    }
  }
  return first;
}

/// The lines behind "Missing ranks:" have no word that all of them share. Horovod from 0.17 on: by rank, the tensors that it has
/// not submitted.
std::size_t LogReader::read_missing_ranks(std::string_view text, std::size_t at) {
  static const RE2 kTensors(R"(^\[([^\[\]]+)\]?\s*$)");
  static const RE2 kNumbered(R"(^(\d+)!?: \[([^\[\]]+)\]?\s*$)");
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const LogLine line = clean_log_line(text.substr(at, std::min(end - at, kLongestLine)), buffer_);
    int number = -1;
    std::string tensors;
    if (!RE2::PartialMatch(piece(line.text), kNumbered, &number, &tensors)) {
      if (!line.number || !RE2::PartialMatch(piece(line.text), kTensors, &tensors)) {
        in_missing_ranks_ = false;
        return at;
      }
      number = *line.number;
    }
    ++line_;
    keep({.kind = ReportedKind::kAbsent, .line = line_, .text = excerpt_of(line.text), .op = tensors.substr(0, tensors.find(',')), .ranks = {number}});
    at = std::min(end + 1, text.size());
    // A list that goes on behind a broken line.
    for (int n = 0; n < 8 && line.text.find(']') == std::string_view::npos && at < text.size(); ++n) {
      const std::size_t next = std::min(text.find('\n', at), text.size());
      const std::string_view more = text.substr(at, next - at);
      std::string scratch;
      if (clean_log_line(more.substr(0, kLongestLine), scratch).has_prefix) break;
      ++line_;
      at = std::min(next + 1, text.size());
      if (more.find(']') != std::string_view::npos) break;
    }
  }
  return at;
}

void LogReader::read_line(std::string_view raw) {
  const LogLine line = clean_log_line(raw, buffer_);
  std::optional<std::int32_t> rank = line.rank ? line.rank : file_rank_;
  // The rank in a group, which is the job's rank only where nothing else is known.
  static const RE2 kGroupRank(R"(\[(?:PG [^\]]*? ?)?Rank (\d{1,7})\])");
  int group_rank = -1;
  const bool has_rank = rank.has_value();
  if (!rank && RE2::PartialMatch(piece(line.text), kGroupRank, &group_rank)) rank = group_rank;
  // JAX programs name their process in the line.
  static const RE2 kProcess(R"(\[process=(\d{1,7})\])");
  if (!rank && RE2::PartialMatch(piece(line.text), kProcess, &group_rank)) rank = group_rank;
  if (has_rank) note_place(line, *rank);
  note_size(line.text);
  if (log_.calls.read(line.text, line_, rank)) return;
  if (line.text.find("Missing ranks") != std::string_view::npos || line.text.starts_with("Stalled ranks")) {
    in_missing_ranks_ = true;
    return;
  }
  // Tuning lines of NCCL and DeepSpeed's comms logger tell what has finished, on one rank: the last of them is worth knowing.
  static const RE2 kFinished(R"((?:comm op: \w+ \||NCCL INFO \w+: \d+ Bytes -> Algo).*)");
  if (RE2::PartialMatch(piece(line.text), kFinished)) {
    finished_ = {.kind = ReportedKind::kHint, .line = line_, .rank = rank, .text = "last call that was logged: " + excerpt_of(line.text)};
    return;
  }
  const bool taken = sections_.read(line.text, line_, [&](ReportedEvent event) { keep(std::move(event)); });
  if (auto [who, place] = sections_.take_place(); who >= 0 && log_.places.size() < kMostPlaces) {
    log_.places.try_emplace(who, std::move(place));
  }
  if (taken) return;
  if (!rank) rank = sections_.rank_of(line_);
  read_grammars(line, rank);
}

void LogReader::read_grammars(const LogLine& line, std::optional<std::int32_t> rank) {
  for (const CompiledGrammar& compiled : compiled_grammars()) {
    re2::StringPiece rest = piece(line.text);
    bool any = false;
    do {
      std::array<re2::StringPiece, kMostGroups> groups;
      const int count = std::min(compiled.pattern->NumberOfCapturingGroups() + 1, kMostGroups);
      if (!compiled.pattern->Match(rest, 0, rest.size(), RE2::UNANCHORED, groups.data(), count)) break;
      ReportedEvent event{.line = line_, .rank = rank, .family = compiled.grammar->family};
      event.host = line.host;
      const LogFields fields(compiled.pattern->NamedCapturingGroups(), std::span(groups).first(static_cast<std::size_t>(count)));
      if (compiled.grammar->fill(fields, event)) {
        sections_.complete(event);
        if (event.kind == ReportedKind::kWaits || event.kind == ReportedKind::kProgress) event.day = day_of(line.text);
        // What went wrong is read best in its whole line.
        const bool whole_line = event.kind == ReportedKind::kEvent || event.kind == ReportedKind::kHint;
        const auto behind = static_cast<std::size_t>(groups[0].data() - line.text.data());
        if (event.text.empty()) event.text = excerpt_of(whole_line && behind < 120 ? without_head(line.text) : fields.whole());
        if (event.kind == ReportedKind::kStack || event.op == "stack") tell_stack(line, event);
        keep(std::move(event));
        any = true;
      }
      rest.remove_prefix(static_cast<std::size_t>(groups[0].data() + groups[0].size() - rest.data()));
    } while (compiled.grammar->again && !rest.empty());
    if (any) return;
  }
}

void LogReader::tell_stack(const LogLine& line, ReportedEvent& event) {
  if (const auto frame = frame_of_line(line.text)) event.text = excerpt_of(frame_text(*frame));
  // What is not kept is not worth a search.
  if (counts_[{event.kind, event.rank.value_or(-1)}] >= kMostOfAKind) return;
  event.caller = excerpt_of(user_frame_behind(line.text, line.rank, behind_, stack_lines_left_));
}

void LogReader::note_place(const LogLine& line, std::int32_t rank) {
  // NCCL writes host, process, thread and device before each line.
  static const RE2 kNccl(R"(^([\w.-]+):(\d+):\d+ \[(\d+)\] )");
  std::string host;
  std::int64_t pid = 0;
  int device = -1;
  const bool nccl = RE2::PartialMatch(piece(line.text), kNccl, &host, &pid, &device);
  if (!nccl && line.host.empty() && line.pid == 0 && line.pod.empty()) return;
  if (log_.places.size() >= kMostPlaces && !log_.places.contains(rank)) return;
  ReportedPlace& place = log_.places[rank];
  if (place.place.host.empty()) place.place.host = nccl ? host : std::string(line.host);
  if (place.place.pid == 0) place.place.pid = nccl ? pid : line.pid;
  if (place.place.device.empty() && nccl) place.place.device = "GPU " + std::to_string(device);
  if (place.pod.empty()) place.pod = line.pod;
}

/// "world_size=8" as torch and launchers print it; not the size of a group ("dp_world_size") or of a node ("local_world_size").
void LogReader::note_size(std::string_view text) {
  static const RE2 kSize(R"((?:^|[\s,;('"{\[])(?:world_size|WORLD_SIZE)['"]?\s*[=:]\s*['"]?(\d{1,7})\b)");
  std::int64_t ranks = 0;
  if (!RE2::PartialMatch(piece(text), kSize, &ranks) || ranks == 0) return;
  if (!log_.size || log_.size->ranks < ranks) log_.size = StatedSize{.ranks = ranks, .line = line_};
}

void LogReader::keep(ReportedEvent event) {
  const std::int32_t who = event.rank.value_or(-1);
  if (event.kind == ReportedKind::kCalls) {
    // A schedule may be long: the last calls of each rank are kept, in a ring.
    const auto known = last_calls_.find(who);
    if (known != last_calls_.end() && known->second.size() == kMostOfAKind) {
      log_.events[known->second[counts_[{event.kind, who}]++ % kMostOfAKind]] = std::move(event);
      return;
    }
  }
  if (log_.events.size() >= kMostEvents) {
    ++log_.dropped;
    return;
  }
  if (event.kind == ReportedKind::kCalls) last_calls_[who].push_back(log_.events.size());
  if (++counts_[{event.kind, who}] > kMostOfAKind && event.kind != ReportedKind::kCalls) {
    ++log_.dropped;
    return;
  }
  log_.events.push_back(std::move(event));
}

}  // namespace lockstep
