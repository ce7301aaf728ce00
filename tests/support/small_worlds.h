// All jobs of a bounded size: every word over a few calls as the program of every rank.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "support/sketch.h"

namespace lockstep::testing {

/// One letter of the alphabet: a call, or a batch as one.
using Letter = std::vector<SketchOp>;

struct SmallWorld {
  std::string name{};
  std::vector<SketchComm> communicators{};
  std::vector<std::vector<Letter>> letters{};  ///< by rank
  std::size_t max_per_rank = 0;                ///< letters
  std::size_t max_in_job = 0;
};

/// What the letters are about; each world has one of these alphabets.
enum class Alphabet {
  kOrder,      ///< blocking and asynchronous collectives on two communicators, wait
  kArguments,  ///< collectives on one communicator that differ in kind, root, count, datatype, reduction
  kMessages,   ///< send, recv, isend, irecv, wait, batches, to every partner
  kMixed,      ///< some of each
  kTags,       ///< messages with tags, probe
  kGroups,     ///< collectives and messages launched together, several streams
  kMini,       ///< the fewest that show an order cycle: two collectives, send, recv
  kStreams,    ///< NCCL: two streams, waits of the host, events
  kMeetings,   ///< NCCL: splits among collectives, calls of no elements, one communicator on two streams
  kSorted,     ///< NCCL: groups of collectives that it sorts, calls of no elements
};

enum class Shape {
  kPair,    ///< ranks 0, 1; both communicators [0,1]
  kChain,   ///< ranks 0-2; communicators [0,1] and [1,2]
  kNested,  ///< ranks 0-2; communicators [0,1,2] and [0,1]
};

/// Tags and probes are MPI's; launches of collectives with messages are not.
bool makes_sense(Alphabet alphabet, Library library);

SmallWorld small_world(Shape shape, Alphabet alphabet, std::size_t max_per_rank, std::size_t max_in_job);

/// Calls `visit` with every job of the world; returns how many there were.
std::size_t for_each_job(const SmallWorld& world, Library library,
                         const std::function<void(const JobSketch&)>& visit);

}  // namespace lockstep::testing
