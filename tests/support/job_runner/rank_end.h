// How a rank of a running Job ends: as the Job says. job_runner only.
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "model/job.h"

namespace lockstep::testing {

inline ProgramEnd end_of(const Job& job, std::int32_t rank) {
  const ProgramIndex index = job.program_of_rank(rank);
  return index == kNoProgram ? job.end_of_rank(rank) : job.program(index).end;
}

/// Ends this process.
[[noreturn]] inline void end_as(ProgramEnd end) {
  if (end.kind == EndKind::kKilled) kill(getpid(), end.status > 0 ? end.status : SIGKILL);
  while (end.kind == EndKind::kRunning || end.kind == EndKind::kKilled) pause();
  std::exit(end.kind == EndKind::kExited && end.status > 0 ? end.status : 0);
}

}  // namespace lockstep::testing
