// DistributedDataParallel's reducer: what it issues by itself, and the wait for all of it at the end of a backward pass.
#pragma once

#include <cstdint>

namespace lockstep::shim::torch {

/// A backend call of the reducer got this request id.
void add_reducer_request(const void* reducer, std::uint32_t request) noexcept;

/// For a new file after a fork.
void reset_reducers() noexcept;

}  // namespace lockstep::shim::torch
