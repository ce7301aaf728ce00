// Words for a call site of a program of torch: the user's line first, then what of a framework made the call
// there.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/job.h"

namespace lockstep {

/// "train.py:212 in train_step -> DistributedDataParallel bucket 3": the innermost frame of the user, then
/// the innermost function of a framework, then what torch did (model/via_frame.h), unless that only repeats
/// `op`. A caller of the same program follows where the user's function has one: "norm.py:34 in get_grad_norm
/// < scaled_global_norm". Empty for the site of another program.
std::string torch_site_text(std::span<const Frame> frames, std::string_view op);
/// The same without the caller and the framework between: the place, and what torch did.
std::string short_torch_site_text(std::span<const Frame> frames, std::string_view op);

}  // namespace lockstep
