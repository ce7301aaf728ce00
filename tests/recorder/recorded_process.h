// A recorder in the process of the test: its file, and the calls that threads make.
#pragma once

#include <string>

#include "call_scope.h"
#include "read_trace.h"

namespace lockstep::recorder_test {

/// Starts the recorder with a ring of 256 KiB in a directory of its own; at the first call in a process. False: it cannot.
bool start();
/// What lies in the file now.
shim_test::ReadTrace read_back();

/// A communicator of two ranks, known under `handle`.
shim::Comm* make_comm(std::uint64_t handle);
/// One all_reduce from a place of its own.
void call_once(shim::Comm* comm, const void* caller, std::uint64_t count);

}  // namespace lockstep::recorder_test
