// An object of Python that stands for a function of torch: it can be called, and is that function in everything else that a program may ask of
// it (name, signature, documentation, source, pickling). Calls through it add no frame.
#pragma once

#include "torch/python_api.h"

namespace lockstep::shim::torch {

inline constexpr std::size_t kMostStandIns = 8;

/// What a call through number `index` does. The interpreter's lock is held; `original` is the function.
using StandInCall = PyObject* (*)(std::size_t index, PyObject* original, PyObject* arguments, PyObject* keywords);

/// A stand-in for `original`, which it keeps for good. Null where this interpreter cannot have one. Cold.
Ref make_stand_in(std::size_t index, PyObject* original, StandInCall call) noexcept;

}  // namespace lockstep::shim::torch
