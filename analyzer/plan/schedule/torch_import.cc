#include "plan/schedule/torch_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "plan/schedule/torch_lower.h"

namespace lockstep::plan {
namespace {

using enum TorchAct;

bool is_message(TorchAct act) { return act >= kSendForward && act <= kRecvBackward; }
bool is_gradient_message(TorchAct act) { return act == kSendBackward || act == kRecvBackward; }
std::string text_of(const TorchLeaf& leaf) { return torch_action_text(TorchAction(leaf)); }

class Checker {
 public:
  explicit Checker(TorchImport& import) : import_(import) {}

  void run() {
    find_stages();
    for (std::size_t rank = 0; rank < import_.order.size(); ++rank) check_row(rank);
    check_completeness();
    if (import_.has_messages) check_messages();
    std::ranges::stable_sort(import_.problems, {},
                             [](const TorchProblem& p) { return std::pair(p.rank, p.cell); });
  }

 private:
  struct Seen {
    std::size_t rank = 0, cell = 0;
  };
  using Key = std::tuple<TorchAct, std::int32_t, std::int32_t>;
  static Key key(const TorchLeaf& leaf) { return {leaf.act, leaf.stage, leaf.micro_batch}; }

  void report(std::size_t rank, std::optional<std::size_t> cell, bool upstream, std::string message) {
    if (++reported_[rank] <= kMaxTorchProblems)
      import_.problems.push_back({rank, cell, std::move(message), upstream});
  }

  /// As many micro-batches as most stages forward: one that is off should not be what the others are held
  /// against.
  void find_stages() {
    std::map<std::int32_t, std::set<std::int32_t>> forwards;  // by stage
    for (std::size_t rank = 0; rank < import_.order.size(); ++rank) {
      for (std::size_t cell = 0; cell < import_.order[rank].size(); ++cell) {
        const TorchAction& action = import_.order[rank][cell];
        for (std::size_t l = 0; l < action.leaf_count(); ++l) {
          const TorchLeaf& leaf = action.leaf(l);
          import_.has_messages |= is_message(leaf.act);
          import_.stages = std::max(import_.stages, leaf.stage + 1);
          if (leaf.act == kForward) forwards[leaf.stage].insert(leaf.micro_batch);
          const auto [owner, is_new] = owners_.try_emplace(leaf.stage, static_cast<std::int32_t>(rank));
          if (!is_new && owner->second != static_cast<std::int32_t>(rank)) {
            report(
                rank, cell, true,
                fmt::format("{}: stage {} is on rank {} already", text_of(leaf), leaf.stage, owner->second));
          }
        }
      }
    }
    std::map<std::size_t, std::size_t> stages_with;  // by number of micro-batches
    for (const auto& [stage, list] : forwards) ++stages_with[list.size()];
    std::size_t most = 0;
    for (const auto& [micro_batches, stages] : stages_with) {
      if (stages < most) continue;
      most = stages;
      import_.micro_batches = static_cast<std::int32_t>(micro_batches);
    }
    import_.stage_ranks.assign(static_cast<std::size_t>(import_.stages), -1);
    for (const auto& [stage, rank] : owners_) import_.stage_ranks[static_cast<std::size_t>(stage)] = rank;
  }

  void check_row(std::size_t rank) {
    std::set<std::int32_t> unsharded;
    std::set<std::int32_t> reduced;
    const auto& row = import_.order[rank];
    const bool shards = std::ranges::any_of(
        row, [](const TorchAction& a) { return a.first.act == kUnshard || a.first.act == kReshard; });
    for (std::size_t cell = 0; cell < row.size(); ++cell) {
      const TorchAction& action = row[cell];
      check_overlap(rank, cell, action);
      for (std::size_t l = 0; l < action.leaf_count(); ++l) {
        const TorchLeaf& leaf = action.leaf(l);
        const auto problem = [&](bool upstream, std::string_view what) {
          report(rank, cell, upstream, fmt::format("{}: {}", text_of(leaf), what));
        };
        if (leaf.act == kUnshard) {
          if (!unsharded.insert(leaf.stage).second) problem(false, "the stage is unsharded already");
        } else if (leaf.act == kReshard) {
          if (unsharded.erase(leaf.stage) == 0) problem(false, "the stage is not unsharded");
        } else {
          check_action(leaf, problem, shards && !unsharded.contains(leaf.stage), reduced);
          const auto [before, is_new] = seen_.try_emplace(key(leaf), Seen{rank, cell});
          if (!is_new) {
            problem(false, fmt::format("stands twice, first in row {}, cell {}", before->second.rank + 1,
                                       before->second.cell + 1));
          }
        }
      }
    }
    for (const std::int32_t stage : unsharded) {
      report(rank, std::nullopt, false, fmt::format("stage {} stays unsharded after the last action", stage));
    }
  }

  template <class Problem>
  void check_action(const TorchLeaf& leaf, const Problem& problem, bool is_sharded,
                    std::set<std::int32_t>& reduced) {
    const auto done = [&](TorchAct act) { return seen_.contains({act, leaf.stage, leaf.micro_batch}); };
    const bool backward = leaf.act == kBackward || leaf.act == kBackwardInput;
    if (leaf.micro_batch >= import_.micro_batches) {
      problem(true, fmt::format("most stages have {} micro-batches, from 0", import_.micro_batches));
    }
    if (backward && !done(kForward)) problem(true, "comes before the forward of the stage");
    if (leaf.act == kBackwardWeight && !done(kBackwardInput))
      problem(true, "comes before the backward of the input");
    if ((leaf.act == kBackward && done(kBackwardInput)) || (leaf.act == kBackwardInput && done(kBackward))) {
      problem(true, "the backward is made in full and in parts");
    }
    const bool computes = backward || leaf.act == kForward || leaf.act == kBackwardWeight;
    if (computes && is_sharded) problem(false, "runs while the stage is sharded");
    if (leaf.act == kReduceGrad) reduced.insert(leaf.stage);
    if ((leaf.act == kBackward || leaf.act == kBackwardWeight) && reduced.contains(leaf.stage)) {
      problem(false, "comes after the stage's REDUCE_GRAD: its gradient is not reduced");
    }
    if (!is_message(leaf.act)) return;
    const bool forward = !is_gradient_message(leaf.act);
    const bool sends = leaf.act == kSendForward || leaf.act == kSendBackward;
    const std::int32_t peer = forward == sends ? leaf.stage + 1 : leaf.stage - 1;
    if (peer < 0 || peer >= import_.stages) return problem(false, "there is no stage on that side");
    if (owners_.contains(peer) && owners_[peer] == owners_[leaf.stage]) {
      return problem(false, fmt::format("stage {} is on the same rank: nothing is sent", peer));
    }
    if (!sends) return;
    const bool made = forward ? done(kForward) : done(kBackward) || done(kBackwardInput);
    if (!made) problem(false, "comes before what it sends is computed");
  }

  void check_overlap(std::size_t rank, std::size_t cell, const TorchAction& action) {
    if (!action.is_overlap()) return;
    if (action.first.act != kForward || action.second.act != kBackward) {
      report(rank, cell, false,
             fmt::format("{}: expected a forward and a full backward", torch_action_text(action)));
    } else if (action.first.stage == action.second.stage) {
      report(rank, cell, false, fmt::format("{}: both are of one stage", torch_action_text(action)));
    }
  }

  /// Every stage makes forward and backward of every micro-batch.
  void check_completeness() {
    for (std::int32_t stage = 0; stage < import_.stages; ++stage) {
      const std::int32_t owner = import_.stage_ranks[static_cast<std::size_t>(stage)];
      if (owner < 0) {
        report(0, std::nullopt, true, fmt::format("no row has stage {}", stage));
        continue;
      }
      const auto rank = static_cast<std::size_t>(owner);
      // Named once a stage: the first of them.
      for (const auto& [what, acts] : {std::pair("forward", std::pair(kForward, kForward)),
                                       std::pair("backward", std::pair(kBackward, kBackwardInput)),
                                       std::pair("weight gradient", std::pair(kBackward, kBackwardWeight))}) {
        std::int32_t missing = -1, count = 0;
        for (std::int32_t m = import_.micro_batches - 1; m >= 0; --m) {
          if (seen_.contains({acts.first, stage, m}) || seen_.contains({acts.second, stage, m})) continue;
          missing = m;
          ++count;
        }
        if (count > 0) {
          report(rank, std::nullopt, true,
                 fmt::format("stage {} has no {} of {} of {} micro-batches, first {}", stage, what, count,
                             import_.micro_batches, missing));
          break;
        }
      }
    }
  }

  /// In a file with messages each result that another rank needs is sent once and received before it is used.
  void check_messages() {
    for (const auto& [what, place] : seen_) {
      const auto& [act, stage, m] = what;
      const bool forward = act == kForward;
      if (!forward && act != kBackward && act != kBackwardInput) continue;
      const auto apart = [&](std::int32_t other) {
        return other >= 0 && other < import_.stages && owners_.contains(other) &&
               owners_[other] != owners_[stage];
      };
      const TorchLeaf leaf{act, stage, m};
      const std::int32_t to = forward ? stage + 1 : stage - 1;
      if (apart(to) && !seen_.contains({forward ? kSendForward : kSendBackward, stage, m})) {
        report(place.rank, place.cell, false,
               fmt::format("{}: its result is not sent to stage {}", text_of(leaf), to));
      }
      const std::int32_t from = forward ? stage - 1 : stage + 1;
      if (!apart(from)) continue;
      const auto received = seen_.find({forward ? kRecvForward : kRecvBackward, stage, m});
      if (received == seen_.end()) {
        report(place.rank, place.cell, false,
               fmt::format("{}: what it needs of stage {} is not received", text_of(leaf), from));
      } else if (received->second.rank == place.rank && received->second.cell > place.cell) {
        report(
            place.rank, place.cell, false,
            fmt::format("{}: comes before its receive, cell {}", text_of(leaf), received->second.cell + 1));
      }
    }
  }

  TorchImport& import_;
  std::map<std::int32_t, std::int32_t> owners_;  // rank by stage
  std::map<Key, Seen> seen_;                     // where each action stands first
  std::map<std::size_t, std::size_t> reported_;  // problems by rank
};

}  // namespace

Result<TorchImport> import_torch_csv(std::string_view csv, std::string_view path, TorchLetters letters) {
  Result<TorchOrder> order = parse_torch_csv(csv, path, letters);
  if (!order) return order.error();
  TorchImport import{.order = std::move(*order)};
  Checker(import).run();
  const bool placed = std::ranges::find(import.stage_ranks, -1) == import.stage_ranks.end();
  if (import.has_messages) {
    if (placed) import.timeline = torch_timeline(import.order, import.stage_ranks);
    return import;
  }
  if (std::ranges::any_of(import.problems, &TorchProblem::checked_upstream)) return import;
  const Result<TorchLowered> lowered = lower_torch_order(import.order, import.stages, import.micro_batches);
  if (lowered) {
    import.timeline = torch_timeline(lowered->compute_comms, lowered->stage_ranks);
  } else {
    import.problems.push_back({.rank = 0, .message = lowered.error().message, .checked_upstream = true});
  }
  return import;
}

}  // namespace lockstep::plan
