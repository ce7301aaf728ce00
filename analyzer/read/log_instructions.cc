#include "read/log_instructions.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::size_t kMostKept = std::size_t{1} << 22;

}  // namespace

bool LogInstructions::read(std::string_view text, std::uint32_t line, std::optional<std::int32_t> rank) {
  static const RE2 kInstruction(
      R"(^\s*(?:(?:[Rr]ank\s*)?(\d{1,6})\s*[:,]?\s+)?(LoadMicroBatch|ForwardPass|BackwardPass|SendActivation|RecvActivation|SendGrad|RecvGrad|ReduceTiedGrads|ReduceGrads|OptimizerStep)\([^()]*\)\s*$)");
  static const RE2 kDone(R"(^\s*(?:(?:[Rr]ank\s*)?(\d{1,6})\s*[:,]?\s+)?done with schedule\s*$)");
  if (kept_ >= kMostKept) return false;
  const re2::StringPiece whole(text.data(), text.size());
  re2::StringPiece number, name;
  const bool done = RE2::PartialMatch(whole, kDone, &number);
  if (!done && !RE2::PartialMatch(whole, kInstruction, &number, &name)) return false;
  if (!number.empty()) rank = std::stoi(std::string(number.data(), number.size()));
  if (!rank) return false;
  Rank& state = ranks_[*rank];
  state.is_done = done;
  if (done) return true;
  const std::string_view what(name.data(), name.size());
  const What kind = what == "SendActivation"   ? What::kSendActivation
                    : what == "RecvActivation" ? What::kRecvActivation
                    : what == "SendGrad"       ? What::kSendGrad
                    : what == "RecvGrad"       ? What::kRecvGrad
                    : what == "OptimizerStep"  ? What::kOptimizerStep
                    : what == "ForwardPass"    ? What::kForwardPass
                    : what == "BackwardPass"   ? What::kBackwardPass
                    : what == "ReduceGrads"    ? What::kReduceGrads
                                               : What::kOther;
  state.steps.push_back({kind, line});
  ++kept_;
  return true;
}

std::int64_t LogInstructions::Rank::count(What what) const { return std::ranges::count(steps, what, &Step::what); }

bool LogInstructions::Rank::is_whole() const {
  const std::int64_t forward = count(What::kForwardPass), backward = count(What::kBackwardPass);
  const std::int64_t sent = count(What::kSendActivation), received = count(What::kRecvActivation), grads_sent = count(What::kSendGrad),
                     grads_received = count(What::kRecvGrad), reduced = count(What::kReduceGrads), stepped = count(What::kOptimizerStep);
  const bool inference = backward + grads_sent + grads_received == 0;
  if (is_done) {
    const auto all_or_none = [forward](std::int64_t number) { return number == 0 || number == forward; };
    return all_or_none(sent) && all_or_none(received) && (inference || backward == forward) && reduced == stepped &&
           (inference || ((grads_received > 0) == (sent > 0) && (grads_sent > 0) == (received > 0))) && all_or_none(grads_sent) &&
           all_or_none(grads_received);
  }
  // On its way: what a pass takes comes before it, what it makes comes after it.
  constexpr std::int64_t kInFlight = 2;
  return (received == 0 || (received >= forward && received <= forward + kInFlight)) && sent <= forward &&
         (sent == 0 || sent + kInFlight >= forward) && backward <= forward && (sent == 0 || grads_received >= backward) &&
         grads_sent <= backward && (received == 0 || grads_sent + kInFlight >= backward) && stepped <= reduced && reduced <= stepped + 1;
}

std::size_t LogInstructions::replicas() const {
  // The first stage receives no activation and the last sends none; in DeepSpeed's grid replicas count fastest.
  std::vector<bool> first, last;
  for (const auto& [rank, state] : ranks_) {
    const auto has = [&steps = state.steps](What what) { return std::ranges::find(steps, what, &Step::what) != steps.end(); };
    first.push_back(has(What::kSendActivation) && !has(What::kRecvActivation));
    last.push_back(has(What::kRecvActivation) && !has(What::kSendActivation));
    if (first.back() == last.back() && !has(What::kRecvActivation)) return 0;  // a stage alone, or too little of it
  }
  const auto number = static_cast<std::size_t>(std::ranges::count(first, true));
  const bool grid = number > 0 && std::ranges::count(last, true) == std::ranges::count(first, true) && first.size() % number == 0 &&
                    std::ranges::all_of(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(number), std::identity{}) &&
                    std::ranges::all_of(last.end() - static_cast<std::ptrdiff_t>(number), last.end(), std::identity{}) &&
                    ranks_.begin()->first == 0 && static_cast<std::size_t>(ranks_.rbegin()->first) + 1 == ranks_.size();
  return grid ? number : 0;
}

std::size_t LogInstructions::add_programs(std::string_view path, JobIntake& intake) {
  if (ranks_.size() < 2) return 0;
  const std::size_t data = replicas();
  JobBuilder& builder = intake.builder();
  const SourceIndex source = builder.source(path);
  builder.warn(data > 0 ? fmt::format("{}: which rank is which stage is not printed; inferred from who receives and who sends: {} stages of {} "
                                      "replica{}, replicas counted first. If it is otherwise, lockstep gate on a plan says what the schedule does",
                                      path, ranks_.size() / data, data, data == 1 ? "" : "s")
                        : fmt::format("{}: which rank is which stage is not printed and cannot be told from the instructions: messages are not "
                                      "paired. lockstep plan expand on a plan of the run has them",
                                      path));
  std::vector<std::int32_t> members;
  for (const auto& [rank, state] : ranks_) members.push_back(rank);
  const CommIndex pipe = builder.communicator("pipeline", "pipeline", members);
  intake.add_to_world(members);
  const bool any_done = std::ranges::any_of(ranks_, [](const auto& entry) { return entry.second.is_done; });
  for (const auto& [rank, state] : ranks_) {
    // Where nobody is done the log merely stops somewhere.
    Program program{.rank = rank, .source = source, .head_missing = true, .tail_missing = !any_done};
    if (!state.is_whole()) {
      builder.warn(fmt::format("{}: instructions of rank {} are missing: the others do not add up; its messages are not paired", path, rank));
      program.tail_missing = true;
      program.operations.push_back({.line = state.steps.empty() ? 0 : state.steps[0].line, .kind = OpKind::kOpaque, .flags = kOpGap});
    } else if (state.is_done) {
      program.end = {EndKind::kExited, ProgramEnd::kStatusUnknown};
    }
    for (std::size_t i = 0; i < state.steps.size(); ++i) {
      const Step& step = state.steps[i];
      Operation operation{.comm = pipe, .line = step.line,
                          .state = state.is_done || i + 1 < state.steps.size() ? OpState::kCompleted : OpState::kEntered};
      if (step.what == What::kOptimizerStep) {
        if (!any_done && operation.state == OpState::kEntered) continue;  // all may be about to leave it
        // What it calls is not printed; on all stages it ends together, for the norm is reduced over all of them.
        operation.kind = OpKind::kBarrier;
        operation.extra = intake.shared_extra("OptimizerStep", "OptimizerStep");
      } else if (step.what <= What::kRecvGrad && data > 0) {
        const bool sends = step.what == What::kSendActivation || step.what == What::kSendGrad;
        const bool onward = step.what == What::kSendActivation || step.what == What::kRecvGrad;
        operation.kind = sends ? OpKind::kSend : OpKind::kRecv;
        operation.peer = rank + static_cast<std::int32_t>(data) * (onward ? 1 : -1);
        if (operation.peer < 0 || operation.peer >= static_cast<std::int32_t>(ranks_.size())) continue;
        const bool activation = step.what == What::kSendActivation || step.what == What::kRecvActivation;
        operation.extra = intake.shared_extra(fmt::format("{}{}", sends ? "Send" : "Recv", activation ? "Activation" : "Grad"), {});
      } else {
        continue;
      }
      program.operations.push_back(operation);
    }
    intake.add_program(std::move(program));
  }
  return ranks_.size();
}

}  // namespace lockstep
