// What every rank of a pipeline does in one step, whichever framework it comes from: computation,
// point-to-point messages, waits, and marks where the framework does something else. The schedules of this
// room make Timelines; rendering and lowering to a Job read them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::plan {

enum class Carries : std::uint8_t {
  kActivation,
  kGradient,
  kShape,  ///< what the tensors behind it look like: a handshake
  kToken,  ///< one number that is passed along the stages (the optimizer's post-validation of zero-bubble)
};

/// What a message holds, by the model chunk and micro-batch of its sender.
struct Payload {
  Carries carries = Carries::kActivation;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  friend bool operator==(const Payload&, const Payload&) = default;
};

struct Message {
  bool send = false;
  bool world = false;     ///< on the default group instead of that of the pipeline
  std::int32_t peer = 0;  ///< rank in the pipeline
  Payload payload{};      ///< of a receive: what the receiver takes it for
  friend bool operator==(const Message&, const Message&) = default;
};

enum class StepKind : std::uint8_t {
  kForward,
  kBackward,
  kBackwardInput,   ///< gradient of the input alone
  kBackwardWeight,  ///< gradient of the weights, put off
  kBatch,           ///< messages issued together (batch_isend_irecv)
  kAsync,           ///< one message issued without waiting (isend, irecv)
  kBlocking,        ///< one message that the host waits for (send, recv)
  kWait,            ///< for the batch or asynchronous message of this `id`
  kMark,
};

/// What a framework does between computation and messages. Those that can make calls of their own are for
/// plan expansion to fill.
enum class Mark : std::uint8_t {
  kNone,
  kNoSyncEnter,  ///< gradient synchronisation is off from here
  kNoSyncExit,
  kDeviceSync,          ///< torch.cuda.synchronize()
  kFinalizeModelGrads,  ///< Megatron: what is left of the gradient synchronisation
  kUnshard,             ///< torch: FSDP all-gather of the stage
  kReshard,
  kReduceGrad,       ///< torch: gradient synchronisation of the stage
  kReduceTiedGrads,  ///< DeepSpeed
  kReduceGrads,      ///< DeepSpeed
  kOptimizerStep,
  kPostValidation,  ///< zero-bubble
};

struct Step {
  StepKind kind = StepKind::kMark;
  Mark mark = Mark::kNone;
  std::uint16_t messages = 0;  ///< of kBatch, kAsync and kBlocking
  std::int32_t chunk = 0;      ///< of computation, and of marks that concern one
  std::int32_t micro_batch = 0;
  std::uint32_t id =
      0;  ///< of what is issued, and of the wait for it; numbered as the framework's trace does
  std::uint32_t first = 0;  ///< in RankTimeline::messages
};

struct RankTimeline {
  std::vector<Step> steps{};
  std::vector<Message> messages{};
  std::span<const Message> messages_of(const Step& step) const {
    return std::span(messages).subspan(step.first, step.messages);
  }

  void compute(StepKind kind, std::int32_t chunk, std::int32_t micro_batch) {
    steps.push_back({.kind = kind, .chunk = chunk, .micro_batch = micro_batch});
  }
  void mark(Mark mark, std::int32_t chunk = 0) { steps.push_back({.mark = mark, .chunk = chunk}); }
  void wait(std::uint32_t id) { steps.push_back({.kind = StepKind::kWait, .id = id}); }
  void issue(StepKind kind, std::uint32_t id, std::span<const Message> list) {
    steps.push_back({.kind = kind,
                     .messages = static_cast<std::uint16_t>(list.size()),
                     .id = id,
                     .first = static_cast<std::uint32_t>(messages.size())});
    messages.insert(messages.end(), list.begin(), list.end());
  }
};

/// Which stage of the model chunk c of rank r is, for p ranks.
enum class Placement : std::uint8_t {
  kLoop,      ///< c * p + r
  kVee,       ///< forwards in even chunks, backwards in odd ones
  kTwoWay,    ///< chunk 1 is a second copy of the model, laid out from the last rank to the first
  kExplicit,  ///< the chunk is the stage
};
std::int32_t stage_of(Placement placement, std::int32_t ranks, std::int32_t rank, std::int32_t chunk);

struct Timeline {
  std::vector<RankTimeline> ranks{};
  Placement placement = Placement::kLoop;
  std::int32_t size() const { return static_cast<std::int32_t>(ranks.size()); }
};

/// What each receive really gets, when messages between two ranks on one group are paired in the order of
/// issue: the payload of the send where there is one, else what the receiver expects. `[rank]` is parallel to
/// RankTimeline::messages.
std::vector<std::vector<Payload>> received_payloads(const Timeline& timeline);

/// "act:0.2", "grad:1.0"; "shape" and "token" say no more. `chunk` is printed as it is.
std::string payload_text(const Payload& payload);

}  // namespace lockstep::plan
