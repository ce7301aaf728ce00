// The last frame of a call site in a program of torch: no caller, but what of torch stood between the
// innermost frame and the call.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/job.h"

namespace lockstep {

inline constexpr std::string_view kVia = "via ";

/// A call whose record begins at the user's own frame: no part of torch to name.
inline constexpr std::string_view kViaTorch = "torch.distributed";

inline Frame via_frame(std::string_view what) { return {.function = std::string(kVia) + std::string(what)}; }

/// "DistributedDataParallel bucket 2"; empty for the site of another program.
inline std::string_view via_of(std::span<const Frame> frames) {
  if (frames.empty() || !frames.back().file.empty() || frames.back().line != 0) return {};
  const std::string_view function = frames.back().function;
  return function.starts_with(kVia) ? function.substr(kVia.size()) : std::string_view{};
}

}  // namespace lockstep
