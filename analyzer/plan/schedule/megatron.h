// The pipeline schedules of Megatron-Core (core/pipeline_parallel/schedules.py) with every way in which they
// exchange tensors (p2p_communication.py): without pipelining, 1F1B, and interleaved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/schedule/timeline.h"

namespace lockstep::plan {

enum class MegatronSchedule : std::uint8_t { kNoPipelining, k1F1B, kInterleaved };

/// Fields of ModelParallelConfig that decide which messages are sent, with its defaults.
struct MegatronOptions {
  bool batch_p2p_comm = true;
  bool batch_p2p_sync = true;  ///< synchronize the device after each batch
  bool overlap_p2p_comm = false;
  bool overlap_p2p_comm_warmup_flush = false;
  bool variable_seq_lengths = false;  ///< shapes go before every exchange
  bool mtp_standalone = false;        ///< the same
  bool ucc = false;  ///< backend of the pipeline group: unbatched messages then never use the default group
  /// microbatch_group_size_per_vp_stage of each rank; empty = as many as stages. One entry = of all ranks.
  /// Ranks that disagree are a fault that a plan must be able to say.
  std::vector<std::int32_t> group_sizes{};
};

struct MegatronQuery {
  MegatronSchedule schedule = MegatronSchedule::k1F1B;
  std::int32_t stages = 1;
  std::int32_t chunks = 1;  ///< virtual stages of a rank
  std::int32_t micro_batches = 1;
  bool forward_only = false;
  MegatronOptions options{};
};

/// Why Megatron refuses to run this, in its own words ("ValueError: ..."); nothing where it runs.
std::optional<std::string> megatron_rejection(const MegatronQuery& query);

/// Precondition: not rejected, numbers positive. Payloads of receives are what the receiver takes them for.
Timeline megatron_timeline(const MegatronQuery& query);

}  // namespace lockstep::plan
