// Frames of stacks as py-spy, faulthandler and gdb print them, and the user's innermost frame behind the one that is told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/job.h"

namespace lockstep {

/// A line of a stack: "    step (train.py:40)", `  File "/x/train.py", line 40 in step`, "#6 0x7f.. in step () at step.c:40";
/// nothing for other text. The file of an installed package begins with the package.
std::optional<Frame> frame_of_line(std::string_view text);

/// "step (train.py:40)"; a frame without a file is its function alone.
std::string frame_text(const Frame& frame);

/// "train.py:40 in step": the innermost frame of the user's own code in the lines behind, of the stack that `line` (without
/// prefixes) is of; where all is frameworks', the innermost that is not torch's or MPI's. Empty where there is none, and in
/// tracebacks of exceptions, which go the other way. Lines of other ranks (by their prefixes) may stand between. Each line that
/// is looked at takes one off `budget`; where none is left, nothing is found.
std::string user_frame_behind(std::string_view line, std::optional<std::int32_t> rank_of_line, std::string_view behind, std::size_t& budget);

}  // namespace lockstep
