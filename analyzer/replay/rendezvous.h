// What each operation does at its rendezvous: at which gate, whether it arrives there, and whether something waits for
// it. Says nothing of hosts and queues, which stand before that. Belongs to the compiler of scripts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "match/match.h"
#include "model/gloo.h"
#include "model/job.h"
#include "replay/coupling.h"
#include "replay/replay.h"
#include "replay/script.h"

namespace lockstep {

/// Whether a send of this kind completes without its receive: MPI's buffered ones, and in `eager` those that libraries
/// buffer when they are small.
bool is_buffered_send(Library library, BlockingModel model, OpKind kind);

/// Whose rules hold for calls on a communicator.
class CallRules {
 public:
  explicit CallRules(const Job& job) : job_(job), library_(job.library()), mixed_(job.mixes_libraries()) {}

  Library library() const { return library_; }  ///< the job's own
  bool mixed() const { return mixed_; }
  Library library_of(CommIndex comm) const { return mixed_ ? job_.library_of(comm) : library_; }
  bool is_nccl(CommIndex comm) const { return library_of(comm) == Library::kNccl; }
  bool is_mpi(CommIndex comm) const { return library_of(comm) == Library::kMpi; }
  /// Starts where it is called, without queues: MPI, and torch on gloo.
  bool is_posted(CommIndex comm) const {
    const Library library = library_of(comm);
    return library == Library::kMpi || library == kGlooLibrary;
  }
  /// Makes or ends a communicator of NCCL: a meeting of the hosts.
  bool is_meeting(const Operation& operation) const {
    return is_collective(operation.kind) && op_class(operation.kind) != OpClass::kCollective && is_nccl(operation.comm);
  }

 private:
  const Job& job_;
  const Library library_;
  const bool mixed_;
};

/// Of one operation. In one word, since there is one for each of 10^8.
class Part {
 public:
  Part() = default;  ///< meets nobody: markers, wildcards, calls of ranks that are no member
  Part(std::uint32_t gate, bool arrives, bool waits)
      : word_(gate | (arrives ? ScriptItem::kArrive : 0) | (waits ? ScriptItem::kWait : 0)) {}

  bool meets() const { return gate() != kNobody; }
  std::uint32_t gate() const { return word_ & ~ScriptItem::kFlags; }
  bool arrives() const { return (word_ & ScriptItem::kArrive) != 0; }
  bool waits() const { return (word_ & ScriptItem::kWait) != 0; }
  /// Equal where both do the same, each at a gate of its own.
  bool is_like(Part other) const {
    return ((word_ ^ other.word_) & ScriptItem::kFlags) == 0 && meets() == other.meets();
  }

 private:
  static constexpr auto kNobody = static_cast<std::uint32_t>(kNoGate);
  std::uint32_t word_ = kNobody;
};

class Rendezvous {
 public:
  /// Writes the gates of rendezvous into `script`, and changes how many have to arrive while parts are read.
  Rendezvous(const Job& job, const MatchResult& match, const ReplayOptions& options, const CallRules& rules,
             Script& script);

  /// By operation of the program. Valid until the next call.
  std::span<const Part> parts_of(ProgramIndex program);
  /// The parts of one launch of a coupled batch share a gate.
  bool couples() const { return coupling_.has_value(); }

 private:
  void find_held_gates();
  Part part_of(const Operation& operation, std::uint32_t i);
  Part part_of_message(const Operation& operation, bool known_complete);
  GateIndex next_gate_apart(const CommunicatorMatch& communicator, const Operation& operation);
  Part relaxed(const Operation& operation, const CommunicatorMatch& communicator, Part part);
  /// What of MPI's rules holds: in a job of NCCL the lenient ones, since the models there are about NCCL.
  BlockingModel mpi_model() const {
    return rules_.mixed() && options_.model != BlockingModel::kBlocking ? BlockingModel::kEager : options_.model;
  }

  const Job& job_;
  const MatchResult& match_;
  const ReplayOptions& options_;
  const CallRules& rules_;
  Script& script_;
  std::array<bool, 256> buffered_{};  // by kind, of the job's library
  std::optional<Coupling> coupling_;
  std::uint32_t first_component_gate_ = 0;
  std::vector<std::uint32_t> held_gates_;  // sorted

  std::vector<Part> parts_;  // of the program being read, and what else belongs to it
  ProgramIndex program_ = kNoProgram;
  std::size_t message_ordinal_ = 0;
  std::vector<bool> known_complete_;  // by operation; empty where no wait of the host says more than the calls do
  std::unordered_map<CommIndex, CommunicatorMatch::Apart> apart_;  // calls made so far, where they are paired apart
};

}  // namespace lockstep
