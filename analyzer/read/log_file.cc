// See the header.
#include "read/log_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "read/foreign_file.h"
#include "read/log_grammars.h"
#include "read/log_reader.h"

namespace lockstep {
namespace {

/// What is not known of the rank yet.
void add_place(std::int32_t rank, const ReportedPlace& told, ReportedEvidence& reported) {
  ReportedPlace& known = reported.places[rank];
  if (known.place.host.empty()) known.place.host = told.place.host;
  if (known.place.pid == 0) known.place.pid = told.place.pid;
  if (!known.place.local_rank) known.place.local_rank = told.place.local_rank;
  if (known.place.device.empty()) known.place.device = told.place.device;
  if (known.pod.empty()) known.pod = told.pod;
}

/// Calls that a log prints, where the job's calls are known already: NCCL's lines count per process and communicator and share no
/// number with other records, so they are not mixed with those. Nothing is lost silently: that they were left aside is said, with
/// the last line of each process whose rank has no other record.
void leave_aside(const ParsedLog& log, std::uint32_t file, JobIntake& intake) {
  const auto last = log.calls.last_by_process();
  if (last.empty()) {
    intake.builder().warn(fmt::format("{}: the schedule that is printed in it is left aside: the calls of the job are known from other files", log.path));
    return;
  }
  std::size_t calls = 0, without_record = 0;
  std::string words;
  std::uint32_t line = 0;
  constexpr std::size_t kMostTold = 8;
  for (const LogCalls::LastCall& process : last) {
    calls += process.calls;
    if (process.rank >= 0 && intake.builder().has_program(process.rank)) continue;
    if (without_record++ >= kMostTold) continue;
    words += fmt::format("{}{}{}", words.empty() ? "" : "; ", process.rank >= 0 ? fmt::format("rank {}: ", process.rank) : "", process.text);
    line = std::max(line, process.line);
  }
  intake.builder().warn(fmt::format("{}: {} NCCL COLL lines of {} processes are left aside: they have no number in common with the other records of "
                                    "the job, and those are more exact; give the log alone to compare them", log.path, calls, last.size()));
  if (words.empty()) return;
  intake.reported().events.push_back({.kind = ReportedKind::kHint, .file = file, .line = line, .text = "last NCCL COLL lines of ranks without another record: " + words});
}

}  // namespace

bool looks_like_log(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || what_it_looks_like(head) != "text of no known form") return false;
  // Damaged JSON is told as that; collectors write logs as JSON lines too.
  return head[first] != '{' || RE2::PartialMatch(re2::StringPiece(head.data(), head.size()), log_trigger());
}

Result<std::unique_ptr<ParsedEvidence>> parse_log(const EvidenceFile& file) {
  auto log = std::make_unique<ParsedLog>();
  log->path = file.path;
  LogReader(*log).feed(file.contents, true);
  return std::unique_ptr<ParsedEvidence>(std::move(log));
}

Result<std::unique_ptr<ParsedEvidence>> parse_log_stream(std::string_view path, ByteSource& source, const ReadProgress& progress) {
  constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
  constexpr std::size_t kEnoughBytes = std::size_t{1} << 20;
  constexpr std::uint64_t kToldBytes = std::uint64_t{32} << 20;
  auto log = std::make_unique<ParsedLog>();
  log->path = path;
  LogReader reader(*log);
  std::string buffer(kBufferBytes, '\0');
  std::size_t filled = 0;
  std::uint64_t told = 0;
  for (bool ended = false; !ended;) {
    while (filled < kEnoughBytes && !ended) {
      const Result<std::size_t> got = source.read(buffer.data() + filled, buffer.size() - filled);
      if (!got) log->warnings.push_back(got.error().message);
      ended = !got || *got == 0;
      filled += got ? *got : 0;
    }
    const std::size_t used = reader.feed(std::string_view(buffer).substr(0, filled), ended);
    buffer.replace(0, filled - used, buffer, used, filled - used);
    filled -= used;
    if (progress && source.taken() - told >= kToldBytes) {
      told = source.taken();
      progress(path, told, source.file_size());
    }
  }
  return std::unique_ptr<ParsedEvidence>(std::move(log));
}

std::vector<std::optional<Error>> join_logs(std::vector<std::unique_ptr<ParsedEvidence>> parsed, JobIntake& intake) {
  std::vector<std::optional<Error>> failures(parsed.size());
  ReportedEvidence& reported = intake.reported();
  const bool has_job = intake.program_count() > 0;
  const auto says_something = [](const std::unique_ptr<ParsedEvidence>& one) {
    const auto& log = static_cast<const ParsedLog&>(*one);
    return !log.events.empty() || !log.calls.empty() || !log.places.empty();
  };
  // Text that says nothing is a log of a job only where there is nothing else.
  LogCalls calls;
  std::string calls_path;
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
    for (const std::string& warning : log.warnings) {
      intake.builder().warn(warning + ": what stands before it is used");
      intake.builder().set_incomplete();
    }
    for (const auto& [rank, place] : log.places) add_place(rank, place, reported);
    if (log.size && (!reported.size || reported.size->ranks < log.size->ranks)) reported.size = StatedSize{log.size->ranks, number, log.size->line};
    for (ReportedEvent& event : log.events) {
      event.file = number;
      reported.events.push_back(std::move(event));
    }
    const auto of_calls = log.calls.places();
    for (const auto& [rank, place] : of_calls) add_place(rank, place, reported);
    if (log.calls.empty()) continue;
    if (has_job) {
      leave_aside(log, number, intake);
      continue;
    }
    if (const std::string last = log.calls.last_calls(); !last.empty()) {
      reported.events.push_back({.kind = ReportedKind::kHint, .file = number, .line = log.calls.last_line(), .text = "last NCCL COLL lines: " + last});
    }
    if (calls_path.empty()) calls_path = log.path;
    calls.merge(std::move(log.calls), log.path);
  }
  // Processes of one job may have written a log each.
  if (!calls.empty()) calls.add_programs(calls_path, intake);
  return failures;
}

}  // namespace lockstep
