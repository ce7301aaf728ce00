// Runs the program of one rank of a Job over NCCL. job_runner starts a process for each, standin_truth a thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "model/job.h"
#include "nccl/api.h"

namespace lockstep::testing {

/// One id for every communicator of a Job, in their order; behind them one for each new_group of torch, by number.
using UniqueIds = std::span<const nccl::ncclUniqueId>;

struct RankOutcome {
  std::string error{};      ///< empty: the program came to its end
  bool unsupported = false; ///< it holds a call that NCCL does not have
  bool wrong_data = false;
};

struct NcclRankOptions {
  int device = 0;
  bool check_data = true;
  std::atomic<std::uint32_t>* operation = nullptr;  ///< kept at the operation under way
  std::atomic<std::uint32_t>* phase = nullptr;      ///< kept at the RankPhase
  /// Makes a call of another library, which the rank calls in between; false: it is not of that library.
  std::function<bool(const Operation&)> other_library{};
};

/// Communicators that no line of the Job makes are made first, in their order. Host waits happen where the lines say so, and once
/// behind the last.
///
/// The calls of a Job of torch are issued as torch does it over NCCL: to a stream of the communicator, behind the current stream, which
/// then waits for a call without a handle, and at `wait` for one with. The host waits in barriers only.
RankOutcome run_nccl_rank(const Job& job, std::int32_t rank, UniqueIds ids, const NcclRankOptions& options);

}  // namespace lockstep::testing
