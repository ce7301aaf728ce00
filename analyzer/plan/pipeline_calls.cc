// Messages of a schedule as calls: which communicator, how many tensors, which are issued together.
#include "plan/pipeline_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plan/plan_timeline.h"
#include "plan/versions.h"

namespace lockstep::plan {
namespace {

bool is_floating(const std::string& datatype) {
  return datatype.empty() || datatype[0] == 'f' || datatype[0] == 'b';
}

}  // namespace

PipelineCalls::PipelineCalls(const Plan& plan, const Parts& parts, const Timeline& timeline, RankCalls& calls)
    : plan_(plan), timeline_(timeline), calls_(calls) {
  unknown_ = {calls.symbol("activation"), calls.datatype(plan.datatype)};
  object_size_ = {{Count::of(1), calls.datatype("i64")}};
  object_ = {{calls.symbol("object"), calls.datatype("u8")}};
  token_ = {{Count::of(1), calls.datatype("f32")}};
  for (std::size_t part = 0; part + 1 < parts.size(); ++part)
    boundaries_.push_back(boundary_of(boundary_tensors(plan, parts, part)));
  no_boundary_ = boundary_of({});
  // By ScheduleSource.
  constexpr Function kSenders[] = {{"pipe/p2p.py", "send_or_recv"},
                                   {"pipeline_parallel/p2p_communication.py", "_communicate"},
                                   {"distributed/pipelining/schedules.py", "_batch_p2p"},
                                   {"zerobubble/runtime.py", "fused_pipeline_ops"},
                                   {"dualpipe/dualpipe.py", "_commit_and_wait_comm"}};
  const ScheduleSource source = schedule_source(plan);
  LoweringOptions options{.source = source, .site = calls.site({kSenders[static_cast<std::size_t>(source)]}, {})};
  options.tensors = [this](std::int32_t rank, const Message& message) { return tensors(rank, message); };
  lowering_ = std::make_unique<ScheduleLowering>(calls.builder(), timeline, options);
}

PipelineCalls::Boundary PipelineCalls::boundary_of(const std::vector<TensorShape>& outputs) const {
  Boundary boundary{.shapes = shape_messages(outputs)};
  for (const TensorShape& output : outputs) {
    const std::string& datatype = output.datatype.empty() ? plan_.datatype : output.datatype;
    const MessageTensor tensor{Count::of(output.elements()), calls_.datatype(datatype)};
    boundary.activations.push_back(tensor);
    if (is_floating(output.datatype)) boundary.gradients.push_back(tensor);  // a mask has none
  }
  if (outputs.empty()) boundary.activations = boundary.gradients = {unknown_};
  return boundary;
}

// DeepSpeed's old versions send the shapes in several messages: kind, number of dimensions, dimensions of
// each tensor.
std::vector<MessageTensor> PipelineCalls::shape_messages(
    const std::vector<TensorShape>& outputs) const {
  const DatatypeIndex integer = calls_.datatype("i64");
  if (plan_.framework != Framework::kDeepSpeed) return {{Count::of(3), integer}};
  if (deepspeed_behaviour(plan_.version).one_meta_message) return {{Count::of(256), calls_.datatype("i32")}};
  std::vector<MessageTensor> messages{{Count::of(1), integer}};
  if (outputs.size() > 1) messages.push_back({Count::of(1), integer});  // how many
  for (const TensorShape& output : outputs) {
    if (outputs.size() > 1) messages.push_back({Count::of(1), integer});  // datatype
    messages.push_back({Count::of(1), integer});
    messages.push_back({Count::of(output.sizes.size()), integer});
  }
  return messages;
}

std::span<const MessageTensor> PipelineCalls::tensors(std::int32_t rank, const Message& message) const {
  const std::int32_t sender = message.send ? rank : message.peer;
  const std::int32_t part = stage_of(timeline_.placement, timeline_.size(), sender, message.payload.chunk);
  const std::int32_t index = message.payload.carries == Carries::kGradient ? part - 1 : part;
  const bool known = index >= 0 && index < std::ssize(boundaries_);
  const Boundary& boundary = known ? boundaries_[static_cast<std::size_t>(index)] : no_boundary_;
  switch (message.payload.carries) {
    case Carries::kActivation:
      return boundary.activations;
    case Carries::kGradient:
      return boundary.gradients;
    case Carries::kShape:
      if (plan_.framework != Framework::kTorch) return boundary.shapes;
      return message.payload.micro_batch == 0 ? object_size_ : object_;
    case Carries::kToken:
      return token_;
  }
  return {};
}

void PipelineCalls::run(const RankState& state, StepProgram& step_program) {
  const auto me = static_cast<std::int32_t>(state.stage_index);
  const std::vector<Step>& steps = timeline_.ranks[static_cast<std::size_t>(me)].steps;
  const bool says_when_to_reduce = std::ranges::any_of(
      steps, [](const Step& step) { return step.kind == StepKind::kMark && step.mark == Mark::kReduceGrad; });
  std::map<std::int32_t, const Step*> last_backward;  // by chunk
  if (!says_when_to_reduce)
    for (const Step& step : steps)
      if (step.kind == StepKind::kBackward || step.kind == StepKind::kBackwardWeight) last_backward[step.chunk] = &step;
  const std::vector<std::size_t> held = parts_of_stage(plan_, state.stage_index);
  const auto chunk_of = [&](const Step& step) {
    if (timeline_.placement != Placement::kExplicit) return static_cast<std::size_t>(step.chunk);
    return static_cast<std::size_t>(std::ranges::find(held, static_cast<std::size_t>(step.chunk)) - held.begin());
  };
  PipelinePlace place;
  RankList ranks;
  const std::vector<Message>& messages = timeline_.ranks[static_cast<std::size_t>(me)].messages;
  if (!messages.empty()) {
    // DeepSpeed sends between job ranks, on the group of all.
    const bool on_world = plan_.framework == Framework::kDeepSpeed;
    ranks = calls_.partners(on_world ? "pipe" : "pp");
    if (on_world || std::ranges::any_of(messages, &Message::world)) place.world = calls_.communicator("world");
    place.pipeline = on_world ? place.world : calls_.communicator("pp");
    place.ranks = ranks;
  }
  lowering_->append(me, place, calls_.program(), [&](const Step& step, OperationTable&) {
    switch (step.kind) {
      case StepKind::kForward:
        return step_program.forward(state, chunk_of(step));
      case StepKind::kBackward:
      case StepKind::kBackwardWeight:
        return step_program.backward(state, chunk_of(step),
                                     !says_when_to_reduce && last_backward[step.chunk] == &step);
      case StepKind::kMark:
        return step_program.at(step.mark, state, chunk_of(step));
      case StepKind::kBackwardInput:
      case StepKind::kBatch:
      case StepKind::kAsync:
      case StepKind::kBlocking:
      case StepKind::kWait:
        return;
    }
  });
}

}  // namespace lockstep::plan
