// See the header. What is a contradiction, and why the rest is not:
//  - The record of a rank ends before a call that a line says it had enqueued: the record is older than the line, or of
//  another
//    run. More calls than the line says are normal: dumps are written after the watchdog's lines.
//  - A watchdog gave up a call, and the record says that this one and more behind it completed.
//  - Another operation, or another size, under the same number of the same group of the same rank.
//  - A group that both describe, in other words; a rank beyond the size of the job; lines of another day than the
//  records.
#include "diagnose/contradictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "base/rank_ranges.h"
#include "diagnose/reported_view.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostTold = 32;

/// "67(default_pg)", "0 (default_pg)", "67".
struct GroupWords {
  std::string_view guid, description;
};

GroupWords words_of(std::string_view group) {
  const std::size_t open = group.find('(');
  GroupWords words{.guid = group.substr(0, open), .description = {}};
  while (!words.guid.empty() && words.guid.back() == ' ') words.guid.remove_suffix(1);
  if (open != std::string_view::npos) words.description = group.substr(open + 1, group.find(')', open) - open - 1);
  if (words.description == "undefined") words.description = {};
  return words;
}

/// The name before the members: "67" of "67[0-3]".
std::string_view name_in(const Communicator& comm) { return std::string_view(comm.id).substr(0, comm.id.find('[')); }

bool is_default(const Communicator& comm) {
  return comm.id == "WORLD" || name_in(comm) == "0" || comm.name == "default_pg";
}

/// Day of the year in a calendar with 31 days a month: enough to tell days apart.
int day_number(int month_and_day) { return month_and_day / 100 * 31 + month_and_day % 100; }

int day_of(double seconds) {
  using namespace std::chrono;
  const sys_seconds at{std::chrono::seconds(static_cast<std::int64_t>(seconds))};
  const year_month_day date{floor<days>(at)};
  return static_cast<int>(100 * static_cast<unsigned>(date.month()) + static_cast<unsigned>(date.day()));
}

std::string day_text(int day) {
  constexpr std::array kMonths{"January", "February", "March",     "April",   "May",      "June",
                               "July",    "August",   "September", "October", "November", "December"};
  return fmt::format("{} {}", day % 100, kMonths[static_cast<std::size_t>(day / 100 - 1)]);
}

/// Reads "ALLREDUCE", "all_gather_v" and the kinds of records as one spelling. NCCL's barriers are all-reduces.
std::string family(std::string_view op) {
  std::string plain = plain_op(op);
  if (plain == "barrier" || plain.ends_with("barrier")) return "allreduce";
  if (plain.ends_with('v') && plain.size() > 6) plain.pop_back();
  return plain;
}

class Comparison {
 public:
  Comparison(const Job& job, const ReportedEvidence& reported) : job_(job), reported_(reported), view_(reported, job) {}

  std::vector<Contradiction> run() {
    for (const ReportedContradiction& known : reported_.contradictions) add({.text = known.text, .ranks = known.ranks});
    if (job_.programs().empty() || reported_.empty()) return std::move(found_);
    compare_sizes();
    compare_days();
    for (const ReportedEvent* line : view_.of(ReportedKind::kProgress)) compare_progress(*line);
    for (const ReportedEvent& line : view_.waits()) compare_wait(line);
    return std::move(found_);
  }

 private:
  std::string place(const ReportedEvent& line) const {
    return fmt::format("{}:{}", reported_.files[line.file], line.line);
  }
  Evidence evidence(const ReportedEvent& line) const { return {reported_.files[line.file], line.line}; }

  void add(Contradiction contradiction) {
    if (found_.size() < kMostTold && texts_.insert(contradiction.text).second)
      found_.push_back(std::move(contradiction));
  }

  void add(std::string text, std::int32_t rank, const ReportedEvent& line, const Program& program) {
    add({.text = std::move(text), .ranks = {rank}, .evidence = {evidence(line), {job_.source(program.source), 0}}});
  }

  const Program* program_of(const ReportedEvent& line) const {
    if (!line.rank) return nullptr;
    const ProgramIndex index = job_.program_of_rank(*line.rank);
    return index == kNoProgram ? nullptr : &job_.program(index);
  }

  const RecordedProgress& progress_of(const Program& program, CommIndex comm) {
    const auto [at, added] = progress_.try_emplace({program.rank, comm});
    if (added) at->second = recorded_progress(program, comm);
    return at->second;
  }

  /// A rank that the other side's number of ranks leaves no room for.
  void compare_sizes() {
    if (reported_.size) {
      const StatedSize& size = *reported_.size;
      std::vector<std::int32_t> beyond;
      for (const Program& program : job_.programs()) {
        if (program.rank >= size.ranks) beyond.push_back(program.rank);
      }
      if (!beyond.empty()) {
        const Program& first = job_.program(job_.program_of_rank(beyond.front()));
        add({.text = fmt::format(
                 "{}:{} says that the job has {} ranks, but {} is the record of rank {}: they are not of one job",
                 reported_.files[size.file], size.line, size.ranks, job_.source(first.source), first.rank),
             .ranks = beyond,
             .evidence = {{reported_.files[size.file], size.line}, {job_.source(first.source), 0}}});
      }
    }
    const auto world = std::ranges::find_if(job_.communicators(), [](const Communicator& comm) {
      return comm.members_known && is_default(comm) && !comm.members.empty();
    });
    if (world == job_.communicators().end()) return;
    const std::int32_t last = std::ranges::max(world->members);
    const auto beyond = [&](const ReportedEvent& line) { return line.rank && *line.rank > last; };
    for (const ReportedEvent* line : view_.of(ReportedKind::kProgress)) {
      if (!beyond(*line)) continue;
      add({.text = fmt::format("{} is of rank {}, but the job of {} has ranks up to {}: they are not of one job",
                               place(*line), *line->rank, job_.source(job_.programs().front().source), last),
           .ranks = {*line->rank},
           .of_log = true,
           .evidence = {evidence(*line)}});
      return;
    }
  }

  void compare_days() {
    double latest = 0;
    const Program* last = nullptr;
    for (const Program& program : job_.programs()) {
      if (program.last_event.value_or(0) > latest) {
        latest = *program.last_event;
        last = &program;
      }
    }
    if (last == nullptr) return;
    constexpr int kFar = 3;  // time zones, and a job that was left to hang for a day
    constexpr int kYear = 12 * 31;
    for (const ReportedEvent& line : reported_.events) {
      if (line.day == 0) continue;
      const int apart = std::abs(day_number(line.day) - day_number(day_of(latest)));
      if (std::min(apart, kYear - apart) < kFar) continue;
      add({.text = fmt::format("{} is of {}, but {} ends on {}: they are not of one run", place(line),
                               day_text(line.day), job_.source(last->source), day_text(day_of(latest))),
           .of_log = true,
           .evidence = {evidence(line), {job_.source(last->source), 0}}});
      return;
    }
  }

  void compare_progress(const ReportedEvent& line) {
    const Program* program = program_of(line);
    if (program == nullptr || line.group.empty()) return;
    const CommIndex index = communicator_of_line(job_, line.group, *line.rank);
    if (index == kNoComm) return;
    const Communicator& comm = job_.communicator(index);
    const GroupWords words = words_of(line.group);
    const std::string& source = job_.source(program->source);
    if (!words.description.empty() && comm.name != name_in(comm) && comm.name != words.description &&
        comm.name != "undefined" && comm.id != "WORLD") {
      add(fmt::format("{} calls process group {} '{}', {} calls it '{}': they are not of one run", place(line),
                      words.guid, words.description, source, comm.name),
          *line.rank, line, *program);
      return;
    }
    const RecordedProgress& held = progress_of(*program, index);
    if (held.made == 0 || held.has_messages) return;
    constexpr std::int64_t kMostCalls = std::int64_t{1} << 31;  // torch 2.3 printed numbers that were never set
    const std::int64_t enqueued = line.enqueued.value_or(-1);
    if (enqueued > 0 && enqueued < kMostCalls && !program->tail_missing &&
        held.made < static_cast<std::uint64_t>(enqueued)) {
      add(fmt::format("{} says that rank {} had enqueued call {} on process group {}, but its record {} ends with call "
                      "{}: the record is older "
                      "than the line, or of another run",
                      place(line), *line.rank, enqueued, words.guid, source, held.made),
          *line.rank, line, *program);
      return;
    }
    const std::int64_t stuck = line.seq.value_or(-1);
    if (stuck > 0 && stuck < kMostCalls && held.completed > static_cast<std::uint64_t>(stuck)) {
      add(fmt::format("{} says that rank {} gave up call {} on process group {}, but its record {} says that all calls "
                      "up to {} completed: they "
                      "are of other runs, or the communicator was aborted between them",
                      place(line), *line.rank, stuck, words.guid, source, held.completed),
          *line.rank, line, *program);
    }
  }

  /// The only communicator of the program's calls, where the line names none.
  CommIndex group_of(const ReportedEvent& line, const Program& program) const {
    if (!line.group.empty()) return communicator_of_line(job_, line.group, program.rank);
    CommIndex only = kNoComm;
    for (const Operation& operation : program.operations) {
      if (operation.comm == kNoComm || operation.comm == only) continue;
      if (only != kNoComm) return kNoComm;
      only = operation.comm;
    }
    return only;
  }

  void compare_wait(const ReportedEvent& line) {
    const Program* program = program_of(line);
    if (program == nullptr || !line.seq || *line.seq <= 0 || line.op.empty() || has_own_number(line.op)) return;
    const CommIndex comm = group_of(line, *program);
    if (comm == kNoComm || progress_of(*program, comm).has_messages) return;
    const auto same = std::ranges::find_if(program->operations, [&](const Operation& operation) {
      // What was filled in for calls that a dump leaves out has neither.
      const bool is_own = to_size(operation.site) != 0 || job_.extra(operation).native_seq.has_value();
      return is_own && operation.comm == comm && is_placed_collective(operation) &&
             operation.seq + std::int64_t{1} == *line.seq;
    });
    if (same == program->operations.end() || same->kind == OpKind::kOpaque || same->kind == OpKind::kUnknown) return;
    const std::string told = family(line.op), held = family(op_name(same->kind));
    const bool sized = held == "allreduce" || held == "broadcast" || held == "reduce";
    const bool other_op = told != held;
    const bool other_size = !other_op && sized && line.elements_in && same->count.is_number() &&
                            !same->count.is_none() &&
                            same->count.number() != static_cast<std::uint64_t>(*line.elements_in) &&
                            same->kind != OpKind::kBarrier && plain_op(line.op) != "barrier";
    if (!other_op && !other_size) return;
    add(fmt::format("{} says that call {} of rank {} is {}{}, but its record {} holds {}{} under that number: they are "
                    "not of one run",
                    place(line), *line.seq, *line.rank, line.op,
                    other_size ? fmt::format(" of {} elements", *line.elements_in) : "", job_.source(program->source),
                    op_name(same->kind), other_size ? fmt::format(" of {}", same->count.number()) : ""),
        *line.rank, line, *program);
  }

  const Job& job_;
  const ReportedEvidence& reported_;
  const ReportedView view_;
  std::map<std::pair<std::int32_t, CommIndex>, RecordedProgress> progress_;
  std::set<std::string> texts_;
  std::vector<Contradiction> found_;
};

}  // namespace

CommIndex communicator_of_line(const Job& job, std::string_view group, std::int32_t rank) {
  const GroupWords words = words_of(group);
  CommIndex found = kNoComm;
  for (std::uint32_t c = 0; c < job.communicators().size(); ++c) {
    const Communicator& comm = job.communicator(CommIndex{c});
    const bool same_name =
        name_in(comm) == words.guid || (is_default(comm) && (words.guid == "0" || words.description == "default_pg"));
    if (!same_name || std::ranges::find(comm.members, rank) == comm.members.end()) continue;
    if (found != kNoComm) return kNoComm;
    found = CommIndex{c};
  }
  return found;
}

RecordedProgress recorded_progress(const Program& program, CommIndex comm) {
  RecordedProgress progress;
  std::uint64_t earlier = 0;
  for (const EarlierCalls& calls : program.earlier) {
    if (calls.comm == comm) earlier = calls.calls;
  }
  bool all_completed = true;
  std::uint64_t made = 0;
  for (const Operation& operation : program.operations) {
    if (operation.comm != comm) continue;
    progress.has_messages = progress.has_messages || is_point_to_point(operation.kind);
    if (!is_placed_collective(operation)) continue;
    ++made;
    all_completed = all_completed && operation.state == OpState::kCompleted;
    if (all_completed) progress.completed = earlier + made;
  }
  if (made > 0) progress.made = earlier + made;
  return progress;
}

std::vector<Contradiction> find_contradictions(const Job& job, const ReportedEvidence& reported) {
  return Comparison(job, reported).run();
}

bool is_touched(const Finding& finding, const Contradiction& contradiction, const ReportedEvidence& reported) {
  const bool rests_on_log = std::ranges::any_of(finding.evidence, [&](const Evidence& evidence) {
    return std::ranges::find(reported.files, evidence.file) != reported.files.end();
  });
  if (contradiction.of_log && !rests_on_log) return false;
  if (contradiction.ranks.empty()) return true;
  return std::ranges::any_of(finding.divergent_ranks, [&](std::int32_t rank) {
    return std::ranges::find(contradiction.ranks, rank) != contradiction.ranks.end();
  });
}

}  // namespace lockstep
