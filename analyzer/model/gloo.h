// Torch on gloo, or on another backend that runs on the host, as a Library of a Job or a communicator: a
// value beside those in job.h, where Library::kTorch stands for a backend that is not told, or that launches
// as NCCL does.
#pragma once

#include "model/job.h"

namespace lockstep {

inline constexpr Library kGlooLibrary{4};  // the enum has a fixed underlying type: any value of it is valid

}  // namespace lockstep
