// The launches of one program that the host has issued without waiting: how a later wait finds them, and what stands in
// the queues. Belongs to the compiler of scripts.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "match/match.h"
#include "model/operation.h"

namespace lockstep {

using LaunchIndex = std::uint32_t;

/// A gate whose opening means that (part of) a launch has completed, and the operation it belongs to.
struct Completion {
  std::uint32_t gate = 0;
  std::uint32_t operation = 0;
};

/// The launches issued to one queue. Its actor is made when a launch comes while others may still stand before it; until
/// then the host starts launches itself, which saves most queues of most jobs.
struct LaunchQueue {
  static constexpr std::uint32_t kNoActor = 0xffffffff;
  std::uint32_t actor = kNoActor;
  std::vector<LaunchIndex> started_by_host{};  ///< not yet waited for, and not handed to the actor
  GateIndex host_has_met = kNoGate;            ///< what its actor knows of the host's meetings
  std::uint32_t on_actor = 0;                  ///< launches on the actor that the host has not waited for

  bool is_idle() const { return started_by_host.empty() && on_actor == 0; }
};

class Launches {
 public:
  /// Forgets the program before. `traits` say which kinds of waits will come, so that no other index is kept.
  void clear(const ProgramTraits& traits);

  /// Registers a launch of `operations` that is complete when all its gates are open. `queue` may be null (MPI has none); it
  /// must outlive the program.
  LaunchIndex add(std::span<const Completion> completions, LaunchQueue* queue, bool on_actor);
  /// Makes the launch findable by what a wait may name of the operation.
  void index(LaunchIndex launch, const Operation& operation);

  /// What a wait has to wait for: its handle, its stream, its peer, else everything issued. Launches already waited for are
  /// left out. Appends to `out`.
  void take(const Operation& wait, std::vector<Completion>& out);
  /// Marks a launch as waited for, and gives what it takes to complete it.
  void take(LaunchIndex launch, std::vector<Completion>& out);

  bool is_waited(LaunchIndex launch) const { return launches_[launch].waited; }
  std::span<const Completion> completions(LaunchIndex launch) const {
    return std::span(completions_).subspan(launches_[launch].first, launches_[launch].count);
  }
  /// The launch is behind the queue's actor from now on.
  void hand_to_actor(LaunchIndex launch);

 private:
  struct Launch {
    std::uint32_t first = 0, count = 0;  // in completions_
    LaunchQueue* queue = nullptr;
    bool on_actor = false;
    bool waited = false;
  };
  /// Launches that one wait may be for, in order of issue; linked through entries_.
  struct List {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    std::uint32_t program = 0;  // of another program than number_: empty
  };
  struct Entry {
    LaunchIndex launch = 0;
    std::uint32_t next = kNone;
  };
  static constexpr std::uint32_t kNone = 0xffffffff;

  static List& at(std::vector<List>& lists, StringIndex key);
  void append(List& list, LaunchIndex launch);
  void take_list(List& list, std::vector<Completion>& out);

  std::uint32_t number_ = 0;  // of the program
  std::vector<Launch> launches_;
  std::vector<Completion> completions_;
  std::vector<Entry> entries_;
  bool index_all_ = false;
  bool index_peers_ = false;
  bool index_streams_ = false;
  List all_;
  // By number of the string: strings of a job are numbered without gaps.
  std::vector<List> by_handle_;
  std::vector<List> by_stream_;
  std::unordered_map<std::int32_t, List> by_peer_;
};

}  // namespace lockstep
