// Calls that are issued to a device: NCCL's, and those of CUDA by which host, streams and events wait for each other. From the records of
// one process to the operations of one of its ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/job.h"
#include "read/job_intake.h"
#include "read/trace_calls.h"
#include "read/trace_program.h"

namespace lockstep {

class TraceDeviceCalls {
 public:
  using Operations = decltype(Program::operations);

  TraceDeviceCalls(const TraceNames& names, JobIntake& intake, TraceProgram& result)
      : names_(names), intake_(intake), result_(result) {}

  /// Whether a record is one of these. `view` is of its communicator, nullptr where there is none.
  static bool takes(const trace::CallRecord& call, const CallExtensions& extensions, const TraceCommView* view);

  /// Adds what the record says about this rank, if anything. `operation` has kind, site, line and state. False: it says that
  /// the call has a position among those of its communicator, and `place` did not accept it.
  template <class Place>
  void add(const trace::CallRecord& call, const CallExtensions& extensions, const TraceCommView* view, Operation operation,
           Place&& place) {
    if (view != nullptr && view->elsewhere) return;
    // A position is taken by every call that was made, also by one that the library refused.
    const bool placed = view != nullptr && view->index != kNoComm && is_collective(operation.kind) && call.seq != trace::kNoPosition;
    if (placed && !place(call.comm, call.seq)) return;
    add_placed(call, extensions, view, operation);
  }

  /// Forgets what stood before: the operations were dropped.
  void forget() { *this = TraceDeviceCalls(names_, intake_, result_); }
  TraceDeviceCalls& operator=(TraceDeviceCalls&& other) noexcept;
  TraceDeviceCalls(TraceDeviceCalls&&) = default;
  /// At the end of the record: what stands in a group that was never closed was not issued.
  void finish();

 private:
  /// What was issued to a stream and is not known to have completed: operations, and waits for events of other streams.
  struct Issued {
    std::uint32_t operation = kNone;
    std::uint64_t stream = 0;  ///< of a wait: everything there up to `upto` stands before what follows
    std::size_t upto = 0;
  };
  struct Stream {
    StringIndex name{};
    std::vector<Issued> issued{};
    std::size_t done = 0;  ///< entries that have completed
    bool is_busy = false;  ///< stands in busy_
  };
  struct Event {
    StringIndex name{};
    std::uint64_t stream = 0;
    std::size_t upto = 0;
  };
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  void add_placed(const trace::CallRecord& call, const CallExtensions& extensions, const TraceCommView* view, Operation operation);
  void add_group(const trace::CallRecord& call, Operation operation);
  void add_wait(const trace::CallRecord& call, const trace::IssueRecord& issue, Operation operation);
  void add_graph_launch(const trace::IssueRecord& issue, Operation operation);
  void add_creation(const trace::CallRecord& call, const CallExtensions& extensions, std::int32_t stated_size, Operation operation);
  /// The size that a grow states.
  std::uint32_t grow_extra(const CallExtensions& extensions);
  /// A shrink is a call of those that stay: puts it on a communicator of theirs. False where they are not known.
  bool place_shrink(const trace::CreationRecord& creation, CommIndex parent, std::span<const std::int32_t> members, Operation& operation);
  std::uint32_t push(const Operation& operation);
  void issue_to(std::uint64_t stream, std::uint32_t operation);
  Stream& stream(std::uint64_t handle);
  StringIndex event_name(std::uint64_t handle);
  StringIndex graph_name(std::uint64_t capture);
  void complete(std::uint64_t stream, std::size_t upto);
  /// Its operations had no effect: the library refused them; or they were never issued, and stand there as markers.
  void refuse_launch(std::uint32_t launch, const std::string& why);
  void undo_launch(std::uint32_t launch, std::string_view why);
  Operations& operations() { return result_.program.operations; }

  const TraceNames& names_;
  JobIntake& intake_;
  TraceProgram& result_;
  std::unordered_map<std::uint64_t, Stream> streams_;
  std::unordered_map<std::uint64_t, Event> events_;
  std::map<std::uint64_t, StringIndex> graphs_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> open_launches_;  ///< operations of each
  std::vector<std::uint64_t> busy_;            ///< streams with something that is not known to have completed
  std::vector<std::uint32_t> without_effect_;  ///< operations whose messages do not count
  std::map<CommIndex, std::uint32_t> shrinks_;  ///< of each communicator, so far
  std::uint32_t event_names_ = 0;
  std::uint32_t open_group_ = 0;  ///< launch number
};

}  // namespace lockstep
