#include "plan/schedule/trace_text.h"

#include <fmt/format.h>

#include <string_view>

namespace lockstep::plan {
namespace {

std::string_view mark_text(Mark mark) {
  switch (mark) {
    case Mark::kNone:
      return "";
    case Mark::kNoSyncEnter:
      return "no_sync_enter";
    case Mark::kNoSyncExit:
      return "no_sync_exit";
    case Mark::kDeviceSync:
      return "cudasync";
    case Mark::kFinalizeModelGrads:
      return "finalize_model_grads";
    case Mark::kUnshard:
      return "UNSHARD";
    case Mark::kReshard:
      return "RESHARD";
    case Mark::kReduceGrad:
      return "REDUCE_GRAD";
    case Mark::kReduceTiedGrads:
      return "ReduceTiedGrads";
    case Mark::kReduceGrads:
      return "ReduceGrads";
    case Mark::kOptimizerStep:
      return "OptimizerStep";
    case Mark::kPostValidation:
      return "POST_VALIDATION";
  }
  return "";
}

char compute_letter(StepKind kind) {
  switch (kind) {
    case StepKind::kForward:
      return 'F';
    case StepKind::kBackward:
      return 'B';
    case StepKind::kBackwardInput:
      return 'I';
    default:
      return 'W';
  }
}

}  // namespace

std::vector<std::string> trace_lines(const RankTimeline& rank, const std::vector<Payload>& received,
                                     bool show_world) {
  std::vector<std::string> lines;
  lines.reserve(rank.steps.size());
  const auto message_text = [&](std::size_t index) {
    const Message& message = rank.messages[index];
    const Payload& payload = received[index];
    return fmt::format("{}{}{} {}{}", message.send ? "send" : "recv", message.send ? '>' : '<', message.peer,
                       payload_text(payload), show_world && message.world ? " @world" : "");
  };
  for (const Step& step : rank.steps) {
    std::string messages;
    for (std::size_t i = 0; i < step.messages; ++i) {
      if (i != 0) messages += "; ";
      messages += message_text(step.first + i);
    }
    switch (step.kind) {
      case StepKind::kForward:
      case StepKind::kBackward:
      case StepKind::kBackwardInput:
      case StepKind::kBackwardWeight:
        lines.push_back(fmt::format("{}{}.{}", compute_letter(step.kind), step.chunk, step.micro_batch));
        break;
      case StepKind::kBatch:
        lines.push_back(fmt::format("batch#{}[{}]", step.id, messages));
        break;
      case StepKind::kAsync:
        lines.push_back(
            fmt::format("{}#{}[{}]", rank.messages[step.first].send ? "isend" : "irecv", step.id, messages));
        break;
      case StepKind::kBlocking:
        lines.push_back(messages);
        break;
      case StepKind::kWait:
        lines.push_back(fmt::format("wait#{}", step.id));
        break;
      case StepKind::kMark:
        lines.emplace_back(mark_text(step.mark));
        break;
    }
  }
  return lines;
}

}  // namespace lockstep::plan
