// One schedule asked for by its parameters, as `lockstep plan schedule` takes them: checks them, and gives
// the whole expansion as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace lockstep::plan {

enum class ScheduleFramework : std::uint8_t {
  kDeepSpeed,
  kMegatron,
  kTorch,
  kTorchRuntime,
  kZeroBubble,
  kDualPipe
};

struct ScheduleQuery {
  ScheduleFramework framework = ScheduleFramework::kMegatron;
  std::string name{};       ///< the schedule, as the framework or its golden file calls it
  std::int64_t stages = 1;  ///< ranks of the pipeline
  std::optional<std::int64_t> virtual_stages{};  ///< stages or model chunks of a rank
  std::int64_t micro_batches = 1;
  std::optional<std::int64_t> total_stages{};  ///< where it is said too, it must be the product
  bool forward_only = false;
  bool old_version = false;  ///< DeepSpeed
  std::string torch_version = "2.14";

  // Megatron. What was not said keeps its default and is not printed.
  std::optional<bool> batch_p2p_comm{}, batch_p2p_sync{}, overlap_p2p_comm{}, overlap_p2p_comm_warmup_flush{},
      variable_seq_lengths{}, mtp_standalone{};
  std::string
      group{};  ///< microbatch_group_size_per_vp_stage: "3", or "rank0:6, others:4" for ranks that disagree

  std::optional<bool> post_validation{};  ///< zero-bubble; some names say it too

  // torch: an order from a file instead of one by name.
  std::string csv{};
  std::string csv_path{};
  bool old_letters = false;
};

/// Forward passes (stages * virtual stages * micro-batches) past which no expansion is made: one printed is
/// some 100 bytes.
inline constexpr std::int64_t kMaxForwardPasses = 1 << 20;

/// One JSON object with a trailing newline. What the framework itself refuses is a value: the object then has
/// "error" (or "lower_error") in place of the expansion, in the framework's words. Errors are those of the
/// query: they name the flag.
Result<std::string> schedule_json(const ScheduleQuery& query);

}  // namespace lockstep::plan
