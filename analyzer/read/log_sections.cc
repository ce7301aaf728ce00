// See the header.
#include "read/log_sections.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <utility>

#include "read/log_grammars.h"

namespace lockstep {
namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

constexpr std::size_t kLongest = 320;

}  // namespace

bool LogSections::read(std::string_view text, std::uint32_t line, const Keep& keep) {
  read_ras(text);
  return read_heading(text) || read_desync(text, line, keep) || read_elastic(text, line) || read_dump_analysis(text, line, keep) || read_task_barrier(text, line, keep);
}

void LogSections::complete(ReportedEvent& event) const {
  if (!event.rank && (event.kind == ReportedKind::kStack || event.op == "stack")) event.rank = section_rank_;
  if (event.kind == ReportedKind::kCount) {
    event.group = ras_communicator_;
    if (event.op.empty()) event.op = ras_op_;
  }
  if (event.op != "RAS silent" || !ras_dead_ || (ras_silent_ && !event.ranks.empty())) return;
  // Considered dead, not only slow to answer.
  event.kind = ReportedKind::kEvent;
  event.finding_class = "peer_crashed";
  event.proves = true;
  if (event.ranks.size() == 1) event.rank = event.ranks.front();
}

std::optional<std::int32_t> LogSections::rank_of(std::uint32_t line) const {
  if (elastic_line_ != 0 && line - elastic_line_ <= 3) return elastic_rank_;
  return std::nullopt;
}

std::pair<std::int32_t, ReportedPlace> LogSections::take_place() { return std::exchange(place_, {-1, {}}); }

/// "=== rank 3 ===", "==> dump_rank3.txt <==", "Rank 3:": a heading over what is of that rank. py-spy's own heading is the
/// command line of the process, in which launchers of torch 1.x and others put the rank.
bool LogSections::read_heading(std::string_view text) {
  static const RE2 kHeading(R"(^(?:(?:==|##|--|\*\*)[=#*>-]*[^=#*]*?[Rr]ank[ _=:-]?(\d{1,7})\b[^=#*]*?(?:[=#*<-]{2,})?|[Rr]ank (\d{1,7}):?)\s*$)");
  static const RE2 kProcess(R"(^Process (\d+): (.*)$)");
  static const RE2 kRankOfCommand(R"((?:^|\s)--(?:node_|global_|local_)?rank[= ](\d{1,7})\b)");
  // "sglang::scheduler_TP0", "VLLM::Worker_TP1": with other axes beside it, the number is not the rank.
  static const RE2 kRankOfTitle(R"(^\w+::[A-Za-z]+_TP(\d{1,7})$)");
  re2::StringPiece marked, plain, command;
  if (RE2::PartialMatch(piece(text), kHeading, &marked, &plain)) {
    int number = -1;
    if (!RE2::FullMatch(marked.empty() ? plain : marked, R"((\d+))", &number)) return false;
    section_rank_ = number;
    return true;
  }
  if (std::int64_t pid = 0; RE2::PartialMatch(piece(text), kProcess, &pid, &command)) {
    int number = -1;
    // A heading of the collector stands before it, and stays.
    if (RE2::PartialMatch(command, kRankOfCommand, &number) || RE2::PartialMatch(command, kRankOfTitle, &number)) section_rank_ = number;
    if (section_rank_) place_ = {*section_rank_, {.place = {.pid = pid}}};
    return true;
  }
  return false;
}

/// Torch's desync report lists by number who has started what: "#17 started ranks:" and then "[0, 1, 3] started ALLREDUCE".
bool LogSections::read_desync(std::string_view text, std::uint32_t line, const Keep& keep) {
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
    keep({.kind = ReportedKind::kWaits, .line = line, .rank = rank, .text = std::string(text.substr(0, kLongest)), .op = op, .seq = desync_number_});
  }
  return true;
}

/// torchelastic prints the host, the rank and how it ended in three lines.
bool LogSections::read_elastic(std::string_view text, std::uint32_t line) {
  static const RE2 kHost(R"(^\s*host\s*: ([A-Za-z0-9][\w.-]{0,252})\s*$)");
  static const RE2 kRank(R"(^\s*rank\s*: (\d{1,7}) \(local_rank: (\d{1,7})\))");
  if (RE2::PartialMatch(piece(text), kHost, &elastic_host_)) {
    elastic_host_line_ = line;
    return true;
  }
  int rank = -1, local = -1;
  if (!RE2::PartialMatch(piece(text), kRank, &rank, &local)) return false;
  elastic_line_ = line;
  elastic_rank_ = rank;
  place_ = {rank, {.place = {.local_rank = local}}};
  if (elastic_host_line_ != 0 && line - elastic_host_line_ <= 2) place_.second.place.host = elastic_host_;
  return true;
}

/// torchfrtrace: "Not all ranks joining collective, sequence number: 112", then the group, the operation and who is missing.
bool LogSections::read_dump_analysis(std::string_view text, std::uint32_t line, const Keep& keep) {
  static const RE2 kHead(R"(Not all ranks joining collective,?(?: sequence number:)? (\d+))");
  static const RE2 kGroup(R"(^\s*group info: ?(.*))");
  static const RE2 kOp(R"(^\s*collective: ?(?:\w+:)?(\w+))");
  static const RE2 kMissing(R"(^\s*missing ranks: ?[{\[](\d[\d, ]*)[}\]])");
  std::string found;
  if (std::int64_t seq = -1; RE2::PartialMatch(piece(text), kHead, &seq)) {
    analysed_seq_ = seq;
    analysed_op_.clear();
    analysed_group_.clear();
    return true;
  }
  if (!analysed_seq_) return false;
  if (RE2::PartialMatch(piece(text), kGroup, &analysed_group_)) return true;
  if (RE2::PartialMatch(piece(text), kOp, &analysed_op_)) return true;
  if (!RE2::PartialMatch(piece(text), kMissing, &found)) return false;
  ReportedEvent event{.kind = ReportedKind::kAbsent, .line = line, .text = std::string(text.substr(0, kLongest)), .seq = analysed_seq_};
  event.op = fmt::format("{} {}{}", analysed_op_.empty() ? "collective" : analysed_op_, *analysed_seq_,
                         analysed_group_.empty() ? "" : " of process group " + analysed_group_.substr(0, 80));
  event.ranks = ranks_in(found);
  keep(std::move(event));
  return true;
}

/// "#0-0 (fa93daea854b060b) MISMATCH" and "... have different AllGather operation counts" head the counts behind them.
void LogSections::read_ras(std::string_view text) {
  static const RE2 kHead(R"(^ *#\d+-\d+ \(([0-9a-f]+)\))");
  static const RE2 kCounts(R"(Communicator ranks have different (\w+))");
  static const RE2 kRank(R"(^ *Rank (\d{1,7})(?: has .*)? -- GPU ([\w,]+) managed by process (\d+) on node ([A-Za-z0-9][\w.:-]{0,252}))");
  // Sections about processes that are gone, and about others that only did not answer; each report begins anew.
  static const RE2 kSection(R"(^(DEAD|INCOMPLETE|Job summary|NCCL version .*)\s*$)");
  if (std::string section; RE2::PartialMatch(piece(text), kSection, &section)) {
    const bool begins = section != "DEAD" && section != "INCOMPLETE";
    ras_dead_ = !begins && (ras_dead_ || section == "DEAD");
    ras_silent_ = !begins && (ras_silent_ || section == "INCOMPLETE");
  }
  if (RE2::PartialMatch(piece(text), kHead, &ras_communicator_)) ras_op_.clear();
  RE2::PartialMatch(piece(text), kCounts, &ras_op_);
  int rank = -1;
  std::string device, node;
  std::int64_t pid = 0;
  if (!RE2::PartialMatch(piece(text), kRank, &rank, &device, &pid, &node)) return;
  place_ = {rank, {.place = {.host = node, .pid = pid, .device = "GPU " + device}}};
}

/// JAX's coordination service lists those that did not come to a barrier, one in a line:
/// "Barrier timed out. Id: save.0. ...", "# of tasks that reached the barrier: 8/10.", "... Some timed out task names:", "/job:jax_worker/replica:0/task:6".
bool LogSections::read_task_barrier(std::string_view text, std::uint32_t line, const Keep& keep) {
  static const RE2 kBarrier(R"(Barrier timed out\. Id: (\S+?)\.?(?:\s|$))");
  static const RE2 kCame(R"(# of tasks that reached the barrier: (\d+/\d+))");
  static const RE2 kList(R"([Ss]ome timed out task names:\s*$)");
  static const RE2 kTask(R"(^\s*/job:\w+/replica:\d+/task:(\d{1,7})\s*$)");
  std::string found;
  if (RE2::PartialMatch(piece(text), kBarrier, &found)) {
    barrier_ = found;
    came_.clear();
    barrier_line_ = 0;
  }
  if (RE2::PartialMatch(piece(text), kCame, &found)) came_ = found;
  if (RE2::PartialMatch(piece(text), kList)) {
    barrier_line_ = line;
    return true;
  }
  int task = -1;
  if (barrier_line_ == 0 || line - barrier_line_ > 2 || !RE2::PartialMatch(piece(text), kTask, &task)) return false;
  barrier_line_ = line;
  ReportedEvent event{.kind = ReportedKind::kAbsent, .line = line, .text = std::string(text.substr(0, kLongest))};
  event.family = "jax";
  event.op = fmt::format("barrier {}{}", barrier_, came_.empty() ? "" : fmt::format(" ({} tasks came)", came_));
  event.ranks = {task};
  keep(std::move(event));
  return true;
}

}  // namespace lockstep
