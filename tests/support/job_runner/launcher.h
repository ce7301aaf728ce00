// Starts the ranks of a Job and watches them. job_runner only.
#pragma once

#include <string>
#include <vector>

#include "model/job.h"
#include "progress.h"

namespace lockstep::testing {

struct LaunchOptions {
  std::string path{};      ///< of the Job
  double timeout_s = 10;   ///< without any rank coming further
  bool over_mpi = false;
  std::string self{};      ///< program to start for each rank over NCCL
  std::string mpi_run{};   ///< mpirun, and
  std::string mpi_rank{};  ///< the program to start with it
  std::string ids{};       ///< for the environment of the ranks
};

/// One more than the highest rank that the Job names.
int count_ranks(const Job& job);

/// Prints which ranks were left where; a RunnerExit.
int launch_and_watch(const Job& job, const LaunchOptions& options);

}  // namespace lockstep::testing
