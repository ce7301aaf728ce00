// Replays of one job under several models, each made when it is asked for, and not at all where a stricter one has
// shown its outcome.
//
// The theorem. Where a replay under `blocking` finishes, those under `lazy` and `eager` of the same job and the same
// other options finish, too.
//
// Proof. Write t(x) for the moment of the blocking replay at which the host is done with operation x: it has arrived,
// and what it waits for there is open. Hosts go through their programs in order, so t grows along a program, and a
// batch is one operation here: in both replays all its parts are arrived at before one is waited for. (Under MPI and
// gloo, where nonblocking calls do not hold the host in any model, t is the moment of the call, and the call that waits
// is an operation of its own.) What the laxer model waits for is less:
//   (1) before an operation arrives, it waits for operations before it in its own program only: host order, queues, what
//       stands before a call on its communicator, events and handles. `blocking` has waited for all of them by then, or
//       never does because they are known to have completed;
//   (2) at an operation it waits only where `blocking` does (`eager` at fewer: buffered sends, members that need no
//       data), and only for the gate of that operation;
//   (3) a gate needs no arrival that it does not need under `blocking` (a broadcast of MPI under `eager`: its root's).
// Suppose some operation does not complete in the laxer replay; let x be one of least t. What stands before x in its
// program has a smaller t and completes, so by (1) x arrives; so its gate is not open. By (2) and (3) an operation y of
// another program has not arrived there that had under `blocking` before t(x). But what stands before y was done under
// `blocking` before y arrived: its t is less than t(x), so it completes, and by (1) y arrives. A contradiction.
//
// `coupled` asks for more than `blocking` in one place (whole sets of batches) and for less in others: it is replayed.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "match/match.h"
#include "model/job.h"
#include "replay/replay.h"

namespace lockstep {

class ModelReplays {
 public:
  /// `models` = those that will be asked for: distinct_models().
  ModelReplays(const Job& job, const MatchResult& match, std::span<const BlockingModel> models);

  /// With `options.trust_completion` and without `options.empty_calls_meet`. Equal to replay(). Valid as
  /// long as this is.
  const ReplayResult& of(BlockingModel model, bool groups_as_written = false);

 private:
  static constexpr std::size_t kModels = 4;
  std::optional<ReplayResult>& made(BlockingModel model, bool groups) {
    return made_[groups ? 1 : 0][static_cast<std::size_t>(model)];
  }

  const Job& job_;
  const MatchResult& match_;
  bool asks_strict_ = false;  ///< `blocking` is replayed anyhow, so first
  std::array<std::array<std::optional<ReplayResult>, kModels>, 2> made_{};
};

}  // namespace lockstep
