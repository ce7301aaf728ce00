// Draws the rank, the call and the change; see the header.
#include "support/fault.h"

#include <algorithm>

namespace lockstep::testing {
namespace {

using enum FaultKind;
using Calls = std::vector<SketchOp>;

bool is_matched(const SketchOp& op) { return is_collective(op.kind) || is_point_to_point(op.kind); }

/// Position of call `index` among those of its rank that it is ordered with.
std::uint32_t position_of(const Calls& program, std::size_t index) {
  const SketchOp& op = program[index];
  std::uint32_t position = 0;
  for (std::size_t i = 0; i < index; ++i) {
    const SketchOp& earlier = program[i];
    if (earlier.comm != op.comm) continue;
    const bool both_collective = is_collective(op.kind) && is_collective(earlier.kind);
    const bool same_channel = earlier.peer == op.peer && ((is_send(op.kind) && is_send(earlier.kind)) ||
                                                          (is_receive(op.kind) && is_receive(earlier.kind)));
    if (both_collective || same_channel) ++position;
  }
  return position;
}

class Injector {
 public:
  Injector(JobSketch& job, Random& random) : job_(job), random_(random) {}

  std::optional<Fault> inject() {
    fault_.kind = static_cast<FaultKind>(random_.below(kFaultKinds));
    fault_.rank = random_.below(static_cast<std::int32_t>(job_.programs.size()));
    const std::vector<std::size_t> candidates = candidate_calls();
    if (candidates.empty()) return std::nullopt;
    index_ = random_.pick(candidates);
    describe_target();
    return apply() ? std::optional(fault_) : std::nullopt;
  }

 private:
  Calls& program() { return job_.programs[static_cast<std::size_t>(fault_.rank)]; }
  SketchOp& target() { return program()[index_]; }
  const std::vector<std::int32_t>& members(int comm) const {
    return job_.communicators[static_cast<std::size_t>(comm)].members;
  }

  /// Calls of the rank that have what the fault changes.
  std::vector<std::size_t> candidate_calls() {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < program().size(); ++i) {
      if (is_matched(program()[i]) && has_what_changes(program()[i])) indices.push_back(i);
    }
    return indices;
  }

  bool has_what_changes(const SketchOp& op) const {
    switch (fault_.kind) {
      case kRoot:
        return has_root(op.kind);
      case kPeer:
        return is_point_to_point(op.kind);
      case kDatatype:
        return !op.datatype.empty();
      case kCount:
        return !op.count.empty() && !has_free_count(op.kind);
      case kReduction:
        return !op.redop.empty();
      case kSkip:
      case kExtra:
      case kSwap:
      case kCommunicator:
      case kEarlyExit:
        return true;
    }
    return true;
  }

  void describe_target() {
    fault_.comm = target().comm;
    fault_.message = is_point_to_point(target().kind);
    fault_.seq = position_of(program(), index_);
    fault_.what = std::string(fault_name(fault_.kind)) + ": rank " + std::to_string(fault_.rank) + ", line " +
                  std::to_string(index_) + ": " + op_line(job_, target());
  }

  void note_change() { fault_.what += " -> " + op_line(job_, target()); }

  bool apply() {
    switch (fault_.kind) {
      case kSkip:
        program().erase(program().begin() + static_cast<std::ptrdiff_t>(index_));
        return true;
      case kExtra:
        return add_call();
      case kSwap:
        return swap_calls();
      case kRoot:
      case kPeer:
        return change_partner();
      case kDatatype:
        return change_text(target().datatype, {"f32", "bf16", "f64", "i64", "u8"});
      case kCount:
        return change_text(target().count, {"1", "3", "5", "4097", "n", "m"});
      case kReduction:
        return change_text(target().redop, {"sum", "max", "min", "prod"});
      case kCommunicator:
        return change_communicator();
      case kEarlyExit:
        return exit_early();
    }
    return false;
  }

  bool change_text(std::string& text, const std::vector<std::string>& choices) {
    const std::string before = text;
    while (text == before) text = random_.pick(choices);
    note_change();
    return true;
  }

  bool change_partner() {
    const auto& all = members(target().comm);
    const std::int32_t before = target().peer;
    std::vector<std::int32_t> others;
    for (const std::int32_t rank : all) {
      const bool to_itself = !has_root(target().kind) && rank == fault_.rank;
      if (rank != before && !to_itself) others.push_back(rank);
    }
    if (others.empty()) return false;
    target().peer = random_.pick(others);
    note_change();
    return true;
  }

  bool change_communicator() {
    std::vector<int> others;
    for (int comm = 0; comm < static_cast<int>(job_.communicators.size()); ++comm) {
      const auto is_member = [&](std::int32_t rank) {
        return std::ranges::find(members(comm), rank) != members(comm).end();
      };
      const bool partner_fits = target().peer < 0 || is_member(target().peer);
      if (comm != target().comm && is_member(fault_.rank) && partner_fits) others.push_back(comm);
    }
    if (others.empty()) return false;
    target().comm = random_.pick(others);
    note_change();
    return true;
  }

  /// First call of the launch that the call belongs to, brackets included; past_unit: one past its last.
  std::size_t unit_begin(std::size_t index) {
    while (index > 0 && program()[index].launch != 0 &&
           program()[index - 1].launch == program()[index].launch)
      --index;
    return index;
  }
  std::size_t past_unit(std::size_t index) {
    const std::uint32_t launch = program()[index].launch;
    ++index;
    while (launch != 0 && index < program().size() && program()[index].launch == launch) ++index;
    return index;
  }

  /// Once more a call that the rank makes anyway, somewhere between its other calls.
  bool add_call() {
    SketchOp extra = target();
    extra.launch = 0;
    extra.handle = "";
    const std::size_t near = unit_begin(random_.chance(50) ? index_ : random_.below(program().size()));
    if (program()[near].kind == OpKind::kExit) return false;
    program().insert(program().begin() + static_cast<std::ptrdiff_t>(near), extra);
    index_ = near;
    describe_target();
    return true;
  }

  /// Exchanges the call (or its whole launch) with a near one of the same rank, or two calls inside a launch.
  bool swap_calls() {
    std::vector<std::size_t> near;
    for (std::size_t i = index_ + 1; i < program().size() && near.size() < 3; ++i) {
      if (is_matched(program()[i])) near.push_back(i);
    }
    if (near.empty()) return false;
    const std::size_t other = random_.pick(near);
    fault_.what += " <-> " + op_line(job_, program()[other]);
    if (target().launch != 0 && target().launch == program()[other].launch) {
      std::swap(program()[index_], program()[other]);
      return true;
    }
    const std::size_t first = unit_begin(index_);
    const std::size_t first_end = past_unit(index_);
    const std::size_t second = unit_begin(other);
    const std::size_t second_end = past_unit(other);
    Calls swapped(program().begin(), program().begin() + static_cast<std::ptrdiff_t>(first));
    const auto copy = [&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i) swapped.push_back(program()[i]);
    };
    copy(second, second_end);
    copy(first_end, second);
    copy(first, first_end);
    copy(second_end, program().size());
    program() = std::move(swapped);
    return true;
  }

  /// The rank makes this call and all later ones no more.
  bool exit_early() {
    index_ = unit_begin(index_);
    if (!is_matched(target())) ++index_;  // the bracket in front of a group
    describe_target();
    program().resize(unit_begin(index_));
    job_.ends[static_cast<std::size_t>(fault_.rank)].status = random_.chance(30) ? 1 : 0;
    return true;
  }

  JobSketch& job_;
  Random& random_;
  Fault fault_{};
  std::size_t index_ = 0;  // the call that is changed, in the program of fault_.rank
};

}  // namespace

std::string_view fault_name(FaultKind kind) {
  switch (kind) {
    case kSkip:
      return "skip";
    case kExtra:
      return "extra";
    case kSwap:
      return "swap";
    case kRoot:
      return "root";
    case kDatatype:
      return "datatype";
    case kCount:
      return "count";
    case kReduction:
      return "reduction";
    case kPeer:
      return "peer";
    case kCommunicator:
      return "communicator";
    case kEarlyExit:
      return "early exit";
  }
  return "";
}

std::optional<Fault> inject_fault(JobSketch& job, Random& random) { return Injector(job, random).inject(); }

}  // namespace lockstep::testing
