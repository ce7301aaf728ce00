// What a launch of a captured graph executes: copies of the calls that were captured into it, put behind the launch. So
// nothing after the model needs to know of graphs, and every replay has a position of its own.
#pragma once

#include <cstddef>
#include <vector>

#include "model/job.h"

namespace lockstep {

/// Calls that all launches of a job may make: what a hostile input could ask for has no bound.
inline constexpr std::size_t kMostReplayedCalls = std::size_t{1} << 24;

/// Puts behind each OpKind::kGraphLaunch the calls with kOpCaptured and the same handle that stand before it, in order, marked
/// kOpReplayed. A call captured after a launch of its graph begins a new graph of that name. Calls captured from one stream run
/// one after the other on the launch's stream; from several, all together, for what orders them inside the graph is not known.
/// `budget` is what may still be made; false where it did not suffice: from there on the program has a gap.
bool expand_graph_launches(Program& program, std::size_t& budget);

}  // namespace lockstep
