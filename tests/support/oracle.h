// The slow, obvious truth that the engine is tested against. It shares the model with the engine and nothing
// else: no gates, no work lists, no early stop; every question is asked of every call, again and again, until
// nothing changes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/job.h"

namespace lockstep::testing {

/// The models of replay/replay.h, in its order.
enum class OracleModel : std::uint8_t { kLazy, kEager, kBlocking, kCoupled };
inline constexpr std::array kOracleModels{OracleModel::kLazy, OracleModel::kEager, OracleModel::kBlocking,
                                          OracleModel::kCoupled};

struct OracleVerdict {
  bool mismatch = false;   ///< calls that meet disagree on something that must agree
  bool imbalance = false;  ///< a member makes more calls than another, or a message lacks its other side
  std::array<bool, 4> deadlock{};  ///< by OracleModel: some call never completes
  bool wrong = false;    ///< mismatch, imbalance, or stuck under what the library promises: MPI may buffer
                         ///< (eager), else lazy
  std::string reason{};  ///< the first thing found, for the person who reads a failed test

  bool stuck(OracleModel model) const { return deadlock[static_cast<std::size_t>(model)]; }
};

OracleVerdict ask_oracle(const Job& job);

struct CallRef {
  std::size_t program = 0;
  std::size_t index = 0;
  friend auto operator<=>(const CallRef&, const CallRef&) = default;
};

/// Who meets whom; timing plays no part.
struct Meetings {
  using CollectiveKey =
      std::pair<std::uint32_t, std::size_t>;  ///< communicator, how-manieth call of a member on it
  using MessageKey =
      std::tuple<std::uint32_t, std::int32_t, std::int32_t, std::uint32_t>;  ///< comm, from, to, tag
  struct Sides {
    std::vector<CallRef> sends{};
    std::vector<CallRef> receives{};
  };
  std::map<CollectiveKey, std::vector<CallRef>> collectives{};
  /// The calls that complete together. As `collectives`, but NCCL counts launches and meetings of hosts (making and ending a
  /// communicator) apart, and collectives of nothing not at all.
  using RendezvousKey = std::tuple<std::uint32_t, char, std::size_t>;  ///< communicator, sort, how-manieth of a member
  std::map<RendezvousKey, std::vector<CallRef>> rendezvous{};
  std::map<MessageKey, Sides> messages{};
};
Meetings find_meetings(const Job& job);
bool is_nccl(const Job& job, const Operation& op);  ///< by the communicator of the call
bool is_mpi(const Job& job, const Operation& op);
/// A collective of NCCL that moves nothing.
bool is_nothing(const Job& job, const Operation& op);

/// Calls after an `exit` line are never made.
std::size_t calls_made(const Program& program);

/// Do the two sides of a meeting differ in what must agree? Says in what, or "" where they agree.
std::string collective_disagreement(const Job& job, const Operation& a, const Operation& b);
std::string message_disagreement(const Job& job, const Operation& send, const Operation& receive);
/// Whether a disagreement is of the sort that keeps a collective from completing: kind, root or size.
bool blocks_each_other(const Job& job, const Operation& a, const Operation& b);

/// What became of every call when all programs are run together; [program][index].
struct OracleRun {
  std::vector<std::vector<bool>> issued{};   ///< its rank came to it
  std::vector<std::vector<bool>> started{};  ///< it is at the head of its queue
  std::vector<std::vector<bool>> completed{};
  std::vector<std::size_t> stuck{};  ///< programs whose host or one of whose queues did not come to its end
  bool finished() const { return stuck.empty(); }
};
/// `as_written`: a group of NCCL is launched one communicator after the other, as they are named in it.
OracleRun run_naively(const Job& job, OracleModel model, bool trust_completion = true, bool as_written = false);

}  // namespace lockstep::testing
