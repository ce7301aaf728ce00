// The chain of Python frames of a call -> call-site id; what stands in the trace for it is written once (kPythonSite).
#pragma once

#include <cstdint>

#include "torch/python_api.h"

namespace lockstep::shim::torch {

/// Site of the Python code that runs on this thread, which holds the interpreter's lock; `native` (null: none) is what torch's C++ does
/// below it and becomes the innermost frame. 0 = there is no frame, or no room. No string is built for a chain that was seen before.
std::uint32_t python_site(const char* native) noexcept;

/// The same from a thread that may not hold the lock: takes it for a moment if the thread has a Python state; else the site has the native
/// frame only.
std::uint32_t site_from_outside(const char* native) noexcept;

/// For a new file after a fork.
void reset_python_sites() noexcept;

}  // namespace lockstep::shim::torch
