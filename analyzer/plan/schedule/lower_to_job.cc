#include "plan/schedule/lower_to_job.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::plan {
namespace {

struct Labels {
  std::string_view send_forward, recv_forward, send_backward, recv_backward, send_shape, recv_shape,
      send_token, recv_token;
};

constexpr Labels kDeepSpeed = {"SendActivation PipelineEngine._exec_send_activations",
                               "RecvActivation PipelineEngine._exec_recv_activations",
                               "SendGrad PipelineEngine._exec_send_grads",
                               "RecvGrad PipelineEngine._exec_recv_grads",
                               "SendActivation PipelineEngine._send_tensor_meta",
                               "RecvActivation PipelineEngine._recv_tensor_meta",
                               "",
                               ""};
constexpr Labels kMegatron = {"send_forward P2PCommunicator._communicate",
                              "recv_forward P2PCommunicator._communicate",
                              "send_backward P2PCommunicator._communicate",
                              "recv_backward P2PCommunicator._communicate",
                              "send shapes P2PCommunicator._communicate_shapes",
                              "recv shapes P2PCommunicator._communicate_shapes",
                              "",
                              ""};
constexpr Labels kTorch = {"SEND_F PipelineStage.get_fwd_send_ops",
                           "RECV_F PipelineStage.get_fwd_recv_ops",
                           "SEND_B PipelineStage.get_bwd_send_ops",
                           "RECV_B PipelineStage.get_bwd_recv_ops",
                           "send shapes PipelineStage._shape_inference",
                           "recv shapes PipelineStage._shape_inference",
                           "warm-up PipelineStage._get_init_p2p_neighbors_ops",
                           "warm-up PipelineStage._get_init_p2p_neighbors_ops"};
constexpr Labels kZeroBubble = {"SEND_FORWARD fused_pipeline_ops",
                                "RECV_FORWARD fused_pipeline_ops",
                                "SEND_BACKWARD fused_pipeline_ops",
                                "RECV_BACKWARD fused_pipeline_ops",
                                "",
                                "",
                                "SEND_POST_VALIDATION fused_pipeline_ops",
                                "RECV_POST_VALIDATION fused_pipeline_ops"};
constexpr Labels kDualPipe = {"send_forward DualPipe._send_forward",
                              "recv_forward DualPipe._recv_forward",
                              "send_backward DualPipe._send_backward",
                              "recv_backward DualPipe._recv_backward",
                              "",
                              "",
                              "",
                              ""};

const Labels& labels_of(ScheduleSource source) {
  switch (source) {
    case ScheduleSource::kDeepSpeed:
      return kDeepSpeed;
    case ScheduleSource::kMegatron:
      return kMegatron;
    case ScheduleSource::kTorch:
      return kTorch;
    case ScheduleSource::kZeroBubble:
      return kZeroBubble;
    case ScheduleSource::kDualPipe:
      return kDualPipe;
  }
  return kMegatron;
}

std::string_view compute_name(StepKind kind) {
  switch (kind) {
    case StepKind::kForward:
      return "forward";
    case StepKind::kBackward:
      return "backward";
    case StepKind::kBackwardInput:
      return "backward of the input";
    default:
      return "backward of the weights";
  }
}

}  // namespace

std::string_view message_label(ScheduleSource source, const Message& message) {
  const Labels& labels = labels_of(source);
  switch (message.payload.carries) {
    case Carries::kActivation:
      return message.send ? labels.send_forward : labels.recv_forward;
    case Carries::kGradient:
      return message.send ? labels.send_backward : labels.recv_backward;
    case Carries::kShape:
      return message.send ? labels.send_shape : labels.recv_shape;
    case Carries::kToken:
      return message.send ? labels.send_token : labels.recv_token;
  }
  return {};
}

ScheduleLowering::ScheduleLowering(JobBuilder& builder, const Timeline& timeline,
                                   const LoweringOptions& options)
    : builder_(builder), timeline_(timeline), options_(options) {}

StringIndex ScheduleLowering::payload(const Payload& payload, std::int32_t stage) {
  const bool plain = payload.carries == Carries::kShape || payload.carries == Carries::kToken;
  const std::uint64_t key =
      static_cast<std::uint64_t>(payload.carries) << 62 |
      (plain ? 0
             : static_cast<std::uint64_t>(static_cast<std::uint32_t>(stage)) << 31 |
                   static_cast<std::uint64_t>(static_cast<std::uint32_t>(payload.micro_batch)));
  const auto [at, is_new] = payloads_.try_emplace(key);
  if (is_new) at->second = builder_.intern(payload_text({payload.carries, stage, payload.micro_batch}));
  return at->second;
}

StringIndex ScheduleLowering::handle(std::uint32_t id) {
  if (id >= handles_.size()) handles_.resize(id + 1);
  if (handles_[id] == StringIndex{}) handles_[id] = builder_.intern(fmt::format("p2p{}", id));
  return handles_[id];
}

std::uint32_t ScheduleLowering::label(const Message& message) {
  const std::string_view text = message_label(options_.source, message);
  const auto [at, is_new] = labels_.try_emplace(text);
  if (is_new) at->second = builder_.extra({.label = std::string(text)});
  return at->second;
}

std::uint32_t ScheduleLowering::compute_label(const Step& step, std::int32_t rank) {
  const std::int32_t stage = stage_of(timeline_.placement, timeline_.size(), rank, step.chunk);
  const std::uint64_t key = static_cast<std::uint64_t>(step.kind) << 62 |
                            static_cast<std::uint64_t>(static_cast<std::uint32_t>(stage)) << 31 |
                            static_cast<std::uint64_t>(static_cast<std::uint32_t>(step.micro_batch));
  const auto [at, is_new] = compute_labels_.try_emplace(key);
  if (is_new) {
    at->second = builder_.extra({.label = fmt::format("{}, stage {}, micro-batch {}", compute_name(step.kind),
                                                      stage, step.micro_batch)});
  }
  return at->second;
}

std::size_t ScheduleLowering::add_message(std::int32_t rank, const Message& message, const PipelinePlace& place,
                                          OperationTable& operations) {
  const std::int32_t sender = message.send ? rank : message.peer;
  const Operation operation{.comm = message.world ? place.world : place.pipeline,
                            .peer = place.ranks[static_cast<std::size_t>(message.peer)],
                            .payload = payload(message.payload, stage_of(timeline_.placement, timeline_.size(),
                                                                         sender, message.payload.chunk)),
                            .site = options_.site,
                            .extra = label(message),
                            .kind = message.send ? OpKind::kSend : OpKind::kRecv};
  const std::size_t first = operations.size();
  if (!options_.tensors) {
    operations.push_back(operation);
    return first;
  }
  for (const MessageTensor& tensor : options_.tensors(rank, message)) {
    operations.push_back(operation);
    operations.back().count = tensor.count;
    operations.back().datatype = tensor.datatype;
  }
  return first;
}

void ScheduleLowering::append(std::int32_t rank, const PipelinePlace& place,
                              OperationTable& operations, const OnStep& on_step) {
  const RankTimeline& timeline = timeline_.ranks[static_cast<std::size_t>(rank)];
  operations.reserve(operations.size() + timeline.steps.size() + timeline.messages.size());
  std::uint32_t launch = 0;
  for (const Operation& operation : operations) launch = std::max(launch, operation.launch);
  const auto tell = [&](const Step& step) {
    if (!on_step) return;
    on_step(step, operations);
    // What the caller put in may have launches of its own.
    if (!operations.empty()) launch = std::max(launch, operations.back().launch);
  };
  for (const Step& step : timeline.steps) {
    switch (step.kind) {
      case StepKind::kForward:
      case StepKind::kBackward:
      case StepKind::kBackwardInput:
      case StepKind::kBackwardWeight:
        if (options_.computation)
          operations.push_back({.extra = compute_label(step, rank), .kind = OpKind::kCompute});
        tell(step);
        break;
      case StepKind::kBatch:
        ++launch;
        for (const Message& message : timeline.messages_of(step)) {
          for (std::size_t i = add_message(rank, message, place, operations); i < operations.size(); ++i) {
            operations[i].launch = launch;
            operations[i].flags = kOpNonblocking;
            operations[i].handle = handle(step.id);
          }
        }
        break;
      case StepKind::kAsync:
        for (const Message& message : timeline.messages_of(step)) {
          for (std::size_t i = add_message(rank, message, place, operations); i < operations.size(); ++i) {
            operations[i].kind = message.send ? OpKind::kIsend : OpKind::kIrecv;
            operations[i].flags = kOpNonblocking;
            operations[i].handle = handle(step.id);
          }
        }
        break;
      case StepKind::kBlocking:
        for (const Message& message : timeline.messages_of(step)) add_message(rank, message, place, operations);
        break;
      case StepKind::kWait:
        operations.push_back({.handle = handle(step.id), .site = options_.site, .kind = OpKind::kWait});
        break;
      case StepKind::kMark:
        tell(step);
        break;
    }
  }
}

}  // namespace lockstep::plan
