// Compiles one program after the other: which steps its host takes, and which its queues, under the rules in replay.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "match/match.h"
#include "model/job.h"
#include "replay/host_waits.h"
#include "replay/launches.h"
#include "replay/rendezvous.h"
#include "replay/replay.h"
#include "replay/script_writer.h"

namespace lockstep {

/// What it makes of a program depends on: kind, launch, flags, state, stream and handle of its operations; which of
/// them have one communicator, whose library that is, and which messages have one partner; and their parts, by
/// Part::is_like. Streams and handles are told apart only, but for the empty one. Of gates it makes copies, and
/// compares none. (alike_programs.h stands on this.)
class ProgramCompiler {
 public:
  ProgramCompiler(const Job& job, const MatchResult& match, const ReplayOptions& options, const CallRules& rules,
                  bool couples, ScriptWriter& writer)
      : job_(job),
        match_(match),
        options_(options),
        rules_(rules),
        nccl_(rules.library() == Library::kNccl),
        couples_(couples),
        writer_(writer) {}

  /// In order of programs. `parts` by operation.
  void compile(ProgramIndex program, std::span<const Part> parts);

 private:
  using Operations = std::span<const Operation>;
  using OperationParts = std::span<const OperationPart>;

  // program_compiler.cc: the host's own steps.
  std::uint32_t compile_batch(std::uint32_t i);
  void compile_by_communicator(std::vector<OperationPart> parts);
  void compile_launch(OperationParts parts, bool is_batch);
  void compile_meetings(OperationParts meetings);
  void compile_posted(OperationParts parts);

  // queued_launches.cc: launches that the host does not wait for, or that stand behind such.
  bool uses_communicators_on_several_streams() const;
  bool host_waits_for(const Operation& operation, bool is_batch) const;
  void compile_queued(OperationParts parts, bool is_batch);
  void find_launches_before(OperationParts parts, const LaunchQueue& queue);
  std::optional<LaunchIndex> start_by_host(OperationParts parts, LaunchQueue* queue);
  std::optional<LaunchIndex> start_on_queue(OperationParts parts, LaunchQueue& queue, bool host_waits);
  void index_launch(LaunchIndex launch, OperationParts parts);
  std::uint64_t queue_key(const Operation& operation, bool is_batch) const;
  LaunchQueue& queue_at(std::uint64_t key);
  std::uint32_t actor_of(LaunchQueue& queue);

  // program_waits.cc: waits of the host.
  void compile_wait(const Operation& wait, std::uint32_t i);
  void compile_host_wait(const Operation& wait, std::uint32_t i);
  void compile_stream_wait(const Operation& wait, std::uint32_t i);
  void host_waits_for_launch(LaunchIndex launch);
  void wait_for(std::uint32_t actor, std::span<const Completion> completions) {
    for (const Completion& completion : completions) writer_.wait(actor, completion.gate, completion.operation);
  }

  const Job& job_;
  const MatchResult& match_;
  const ReplayOptions& options_;
  const CallRules& rules_;
  const bool nccl_;
  const bool couples_;
  ScriptWriter& writer_;
  static constexpr std::uint64_t kMeetingQueue = std::uint64_t{1} << 62;
  std::size_t next_probe_ = 0;  // programs are compiled in order

  ProgramIndex program_ = kNoProgram;  // the one being compiled, and what belongs to it
  Operations operations_;
  std::span<const Part> parts_;
  std::uint32_t host_ = 0;
  bool host_can_block_ = true;
  std::unordered_map<std::uint64_t, LaunchQueue> queues_;  // references to its elements stay valid
  struct FoundQueue {
    std::uint64_t key = 0;
    LaunchQueue* queue = nullptr;
  };
  std::array<FoundQueue, 8> found_queues_{};  // programs use few queues, again and again
  Launches launches_;
  bool follow_streams_ = false;
  StreamHeads heads_;
  bool keeps_issue_order_ = false;
  struct LastLaunch {
    LaunchIndex launch = 0;
    const LaunchQueue* queue = nullptr;
  };
  std::unordered_map<CommIndex, LastLaunch> last_launches_;
  GateIndex host_has_met_ = kNoGate;  // opens when the host is past its meetings so far; kNoGate: it had none

  std::vector<OperationPart> batch_;        // scratch
  std::vector<OperationPart> waited_;       // scratch
  std::vector<LaunchQueue*> other_queues_;  // scratch
  std::vector<LaunchIndex> before_;         // scratch
  std::vector<Completion> completions_;     // scratch
};

}  // namespace lockstep
