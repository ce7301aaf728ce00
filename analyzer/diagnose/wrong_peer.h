// A message that goes to one rank while another waits for it: seen in what ranks stand in, where records end at the hang.
#pragma once

#include <optional>

#include "diagnose/describe.h"
#include "diagnose/wait_graph.h"
#include "replay/replay.h"

namespace lockstep {

/// A rank of a cycle stands in a message with one that makes no such call, and a third stands in a message with it, of the same
/// kind, that it does not make.
struct WrongPeer {
  ProgramIndex program = kNoProgram;  ///< whose peer is another than the third rank expects
  std::uint32_t operation = 0;
  ProgramIndex waiting = kNoProgram;  ///< the third rank
};

/// Nothing where no rank of the cycle stands so, or several do. O(messages that are stuck in it, squared, of a bounded number).
std::optional<WrongPeer> find_wrong_peer(const Describer& describe, const ReplayResult& replay, const Cause& cause);

/// Class, explanation, fix and position.
void explain_wrong_peer(const Describer& describe, const WrongPeer& wrong, Finding& finding);

}  // namespace lockstep
