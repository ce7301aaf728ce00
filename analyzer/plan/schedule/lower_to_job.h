// From a Timeline to a rank's operations in a Job: batches, messages and waits with what they carry and which
// framework function makes them. Collectives that the framework makes in between are the caller's: it is told
// of every mark and every computation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/job_builder.h"
#include "plan/schedule/timeline.h"

namespace lockstep::plan {

/// Whose functions make the messages: what the operations are labelled with.
enum class ScheduleSource : std::uint8_t { kDeepSpeed, kMegatron, kTorch, kZeroBubble, kDualPipe };

/// How often a rank makes each of a schedule's messages depends on its stage and on nothing else: the axis
/// that a reader is to be told when counts differ. Two ranks of one stage make the same calls.
inline constexpr std::string_view kScheduleVariesOver = "stage";

/// "send_forward P2PCommunicator._communicate": instruction and function.
std::string_view message_label(ScheduleSource source, const Message& message);

struct MessageTensor {
  Count count{};  ///< nothing = not said
  DatatypeIndex datatype{};
};

/// What rank `rank` of the pipeline sends or receives as this message: one call for each tensor.
using TensorsOf = std::function<std::span<const MessageTensor>(std::int32_t rank, const Message& message)>;

struct LoweringOptions {
  ScheduleSource source = ScheduleSource::kMegatron;
  TensorsOf tensors{};       ///< empty: one, of which nothing is said
  SiteIndex site{};          ///< the code that makes messages and waits
  bool computation = false;  ///< also put forwards and backwards in, as `compute`
};

/// One pipeline among the ranks of a job.
struct PipelinePlace {
  std::span<const std::int32_t> ranks{};  ///< job rank of each rank of the pipeline
  CommIndex pipeline = kNoComm;
  CommIndex world = kNoComm;  ///< of messages on the default group
};

/// A mark, or a computation.
using OnStep = std::function<void(const Step& step, OperationTable& operations)>;

/// Interns texts once for all ranks and pipelines with one schedule. `builder` must outlive it.
class ScheduleLowering {
 public:
  ScheduleLowering(JobBuilder& builder, const Timeline& timeline, const LoweringOptions& options);

  /// Appends what rank `rank` of the pipeline does. Launch numbers go on from the last operation's; handles
  /// are used again, after their waits. `on_step` may be empty. O(steps + messages).
  void append(std::int32_t rank, const PipelinePlace& place, OperationTable& operations,
              const OnStep& on_step = {});

 private:
  /// Its calls are [result, end of `operations`).
  std::size_t add_message(std::int32_t rank, const Message& message, const PipelinePlace& place,
                          OperationTable& operations);
  StringIndex payload(const Payload& payload, std::int32_t stage);
  StringIndex handle(std::uint32_t id);
  std::uint32_t label(const Message& message);
  std::uint32_t compute_label(const Step& step, std::int32_t rank);

  JobBuilder& builder_;
  const Timeline& timeline_;
  LoweringOptions options_;
  std::unordered_map<std::uint64_t, StringIndex> payloads_;
  std::vector<StringIndex> handles_;  // by id
  std::unordered_map<std::string_view, std::uint32_t> labels_;
  std::unordered_map<std::uint64_t, std::uint32_t> compute_labels_;
};

}  // namespace lockstep::plan
