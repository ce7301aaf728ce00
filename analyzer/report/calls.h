// The calls of a Job as text: communicators first, then the calls of each rank in aligned columns.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "model/job.h"

namespace lockstep {

struct CallFilter {
  CommIndex comm = kNoComm;                                    ///< kNoComm = all
  std::size_t last = std::numeric_limits<std::size_t>::max();  ///< at most that many calls, from the end
};

/// One row per communicator: name, members, how many collective calls each rank made.
std::string communicators_text(const Job& job);

/// Takes a piece of text; false = stop.
using TextSink = std::function<bool(std::string_view)>;

/// A heading for the rank and a row per call, handed on in pieces: a program can have 10^8 calls. Columns are
/// aligned within a piece. False: the sink said stop.
bool write_calls(const Job& job, const Program& program, const CallFilter& filter, const TextSink& sink);

/// "exited with status 0", "killed by signal 9", "still there", "end not known".
std::string end_text(const ProgramEnd& end);

}  // namespace lockstep
