// The calls of a Job as text.
#include "report/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "base/rank_ranges.h"
#include "lockstep/op_kind.h"
#include "report/columns.h"
#include "report/operation_rows.h"
#include "report/printable.h"

namespace lockstep {
namespace {

constexpr std::size_t kMembersWidth = 60;
constexpr std::size_t kRowsAtOnce = 4096;

std::string op_text(const Operation& operation) {
  const std::string name(op_name(operation.kind));
  if (!is_point_to_point(operation.kind) || operation.peer == kNoPeer) return name;
  const std::string peer = operation.peer == kAnyPeer ? "any" : fmt::format("{}", operation.peer);
  return name + (is_receive(operation.kind) ? " from " : " to ") + peer;
}

std::string rest_text(const Job& job, const Operation& operation) {
  std::string text;
  const auto append = [&text](std::string_view word) {
    if (!text.empty()) text += ' ';
    text += word;
  };
  if (operation.tag == kAnyTag) append("tag=any");
  if (operation.tag < kAnyTag) append(fmt::format("tag={}", operation.tag));
  if (to_size(operation.stream) != 0) append(fmt::format("stream={}", job.text(operation.stream)));
  if (to_size(operation.handle) != 0) append(fmt::format("handle={}", job.text(operation.handle)));
  if (operation.launch != 0) append(fmt::format("batch={}", operation.launch));
  if (operation.nonblocking()) append("nonblocking");
  return printable(text);
}

Cells call_cells(const Job& job, const Operation& operation, std::size_t index) {
  const bool on_comm = operation.comm != kNoComm;
  OperationView view;
  view.op = op_name(operation.kind);
  view.count = job.count_text(operation.count);
  view.datatype = job.datatype(operation.datatype);
  view.redop = job.redop(operation.redop);
  view.payload = job.text(operation.payload);
  if (operation.peer != kNoPeer) view.peer = operation.peer;
  return {fmt::format("{:>6}", index),
          op_text(operation),
          is_placed_collective(operation) && on_comm ? fmt::format("#{}", operation.seq) : "",
          on_comm ? "on " + printable(job.communicator(operation.comm).name) : "",
          arguments_text(view),
          site_text(job.site(operation.site).frames, job.extra(operation).label),
          operation.state == OpState::kUnknown ? "" : std::string(op_state_name(operation.state)),
          rest_text(job, operation)};
}

std::string heading(const Job& job, const Program& program) {
  std::string text =
      fmt::format("rank {}: {} calls, {}", program.rank, program.operations.size(), end_text(program.end));
  if (!program.place.host.empty()) text += ", host " + program.place.host;
  if (program.place.pid != 0) text += fmt::format(", pid {}", program.place.pid);
  if (!program.place.device.empty()) text += ", device " + program.place.device;
  if (!job.source(program.source).empty()) text += ", from " + job.source(program.source);
  if (program.head_missing) text += ", its first calls are lost";
  if (program.tail_missing) text += ", its last calls may be lost";
  return printable(text) + '\n';
}

/// Per communicator and rank the number of collective calls.
std::vector<std::map<std::int32_t, std::size_t>> calls_by_comm(const Job& job) {
  std::vector<std::map<std::int32_t, std::size_t>> calls(job.communicators().size());
  for (const Program& program : job.programs()) {
    std::vector<std::size_t> counts(calls.size());
    for (const Operation& operation : program.operations)
      if (is_placed_collective(operation)) ++counts[to_size(operation.comm)];
    for (std::size_t comm = 0; comm < counts.size(); ++comm) {
      const auto& members = job.communicators()[comm].members;
      if (counts[comm] != 0 || std::ranges::find(members, program.rank) != members.end())
        calls[comm][program.rank] = counts[comm];
    }
  }
  return calls;
}

std::string counts_text(const std::map<std::int32_t, std::size_t>& calls) {
  std::map<std::size_t, std::vector<std::int32_t>, std::greater<>> ranks_by_count;
  for (const auto& [rank, count] : calls) ranks_by_count[count].push_back(rank);
  if (ranks_by_count.empty()) return "no record of a member";
  if (ranks_by_count.size() == 1)
    return fmt::format("{} calls{}", ranks_by_count.begin()->first, calls.size() == 1 ? "" : " each");
  std::string text;
  for (const auto& [count, ranks] : ranks_by_count)
    text += fmt::format("{}{}: {}", text.empty() ? "calls differ: " : ", ", named_ranks(ranks, kMembersWidth),
                        count);
  return text;
}

}  // namespace

std::string end_text(const ProgramEnd& end) {
  switch (end.kind) {
    case EndKind::kUnknown:
      return "end not known";
    case EndKind::kExited:
      if (end.status == ProgramEnd::kStatusUnknown) return "no further call";
      return fmt::format("exited with status {}", end.status);
    case EndKind::kKilled:
      return fmt::format("killed by signal {}", end.status);
    case EndKind::kRunning:
      return "still there";
  }
  return "end not known";
}

std::string communicators_text(const Job& job) {
  const auto calls = calls_by_comm(job);
  std::vector<Cells> rows;
  for (std::size_t i = 0; i < job.communicators().size(); ++i) {
    const Communicator& communicator = job.communicators()[i];
    rows.push_back({"  " + printable(communicator.name),
                    '[' + rank_ranges(communicator.members, kMembersWidth) + ']' +
                        (communicator.members_known ? "" : " (seen calling)"),
                    counts_text(calls[i])});
  }
  std::string text = "communicators\n";
  for (const std::string& line : align_columns(rows, kAnyWidth, 0)) text += line + '\n';
  return text;
}

bool write_calls(const Job& job, const Program& program, const CallFilter& filter, const TextSink& sink) {
  const auto& operations = program.operations;
  const auto wanted = [&filter](const Operation& operation) {
    return filter.comm == kNoComm || operation.comm == filter.comm;
  };
  const auto matching = static_cast<std::size_t>(std::ranges::count_if(operations, wanted));
  std::size_t to_skip = matching - std::min(matching, filter.last);

  std::string text = heading(job, program);
  std::vector<Cells> rows;
  const auto flush = [&] {
    for (const std::string& line : align_columns(rows, kAnyWidth, 0)) text += line + '\n';
    rows.clear();
    const bool go_on = sink(text);
    text.clear();
    return go_on;
  };
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (!wanted(operations[i])) continue;
    if (to_skip != 0) {
      --to_skip;
      continue;
    }
    rows.push_back(call_cells(job, operations[i], i));
    if (rows.size() == kRowsAtOnce && !flush()) return false;
  }
  return flush();
}

}  // namespace lockstep
