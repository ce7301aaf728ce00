// See the header.
#include "diagnose/model_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/rank_ranges.h"
#include "diagnose/cycle_finding.h"
#include "diagnose/wait_graph.h"

namespace lockstep {
namespace {

class ModelFindings {
 public:
  ModelFindings(const Describer& describe, std::span<const BlockingModel> models, ModelReplays& replays)
      : describe_(describe), job_(describe.job()), match_(describe.match()), models_(models), replays_(replays) {}

  std::optional<Finding> find() {
    const bool any_completed = std::ranges::any_of(match_.traits, &ProgramTraits::completed);
    const bool groups = job_.library() == Library::kNccl && std::ranges::any_of(match_.traits, &ProgramTraits::batches);
    if (groups) {
      if (auto finding = stall({.model = models_.front(), .groups_as_written = true}, Severity::kContractViolation)) return finding;
    }
    if (auto finding = order_of_empty_calls()) return finding;
    for (const BlockingModel model : models_) {
      if (model == models_.front()) continue;
      const bool ordered_by_user = job_.library() == Library::kNccl && model == BlockingModel::kBlocking &&
                                   job_.library_version() != 0 && job_.library_version() < 22600;
      const Severity severity = job_.library() == Library::kMpi ? Severity::kUnsafe
                                : ordered_by_user               ? Severity::kContractViolation
                                                                : Severity::kPotential;
      if (auto finding = stall({.model = model, .groups_as_written = groups}, severity)) return finding;
    }
    if (!any_completed) return std::nullopt;
    return stall({.model = models_.front(), .trust_completion = false}, Severity::kUnsafe);
  }

 private:

  /// Calls of no elements that stand in another order across communicators. The run gets by, since NCCL enqueues none of them;
  /// with data it would not, and NCCL's documentation asks for one order. Nothing else may be what it stands in.
  std::optional<Finding> order_of_empty_calls() {
    const bool any = job_.library() == Library::kNccl && std::ranges::any_of(match_.traits, &ProgramTraits::zero_counts);
    if (!any || match_.pairs_apart) return std::nullopt;
    ReplayOptions options{.model = models_.front(), .trust_completion = false};
    if (!replay(job_, match_, options).finished()) return std::nullopt;
    options.empty_calls_meet = true;
    return stall(options, Severity::kContractViolation);
  }

  /// The first cycle of the job under these options.
  std::optional<Finding> stall(const ReplayOptions& options, Severity severity) {
    const bool is_kept = options.trust_completion && !options.empty_calls_meet;
    const ReplayResult& stalled = is_kept ? replays_.of(options.model, options.groups_as_written)
                                          : other_replay_ = replay(job_, match_, options);
    for (const Cause& cause : find_causes(job_, stalled)) {
      if (cause.kind != CauseKind::kCycle) continue;
      if (options.model == BlockingModel::kCoupled && !couples_batches(stalled, cause)) continue;
      // Beside NCCL, what only MPI's strict rules hold up depends on its buffers.
      if (job_.mixes_libraries() && severity == Severity::kPotential && is_of_mpi(stalled, cause)) severity = Severity::kUnsafe;
      Finding finding = cycle_finding(describe_, stalled, cause);
      finding.severity = severity;
      finding.models = {std::string(blocking_model_name(options.model))};
      if (options.groups_as_written && options.model == models_.front()) {
        finding.explanation += "; they stand in groups, and NCCL since 2.26.2 puts the communicators of a group in an order of its own, so "
                               "this run can end; its documentation asks for one order all the same";
      }
      if (options.empty_calls_meet) {
        finding.explanation += "; the calls of no elements are not enqueued, so this run can end; with data it would not";
      }
      if (options.model == BlockingModel::kCoupled) {
        finding.finding_class = "batch_coupling";
        std::set<std::int32_t> coupled;
        for (const std::size_t stuck : cause.stuck) {
          for (const ProgramIndex program : stalled.stuck[stuck].arrived) coupled.insert(job_.program(program).rank);
        }
        finding.divergent_ranks.assign(coupled.begin(), coupled.end());
        finding.title = fmt::format("the batches of {} end only together, and some are issued after the end of others",
                                    ranks_text(finding.divergent_ranks));
        finding.fix = "issue one batch per peer, in the order of the peers, so that no batch waits for the end of another";
      } else if (severity == Severity::kUnsafe) {
        finding.finding_class = "relies_on_buffering";
      }
      return finding;
    }
    return std::nullopt;
  }

  bool is_of_mpi(const ReplayResult& stalled, const Cause& cause) const {
    return std::ranges::all_of(cause.stuck, [&](std::size_t s) {
      const GateIndex gate = stalled.stuck[s].gate;
      if (gate == kNoGate) return false;
      const GateOwner owner = owner_of(match_, gate);
      return job_.library_of(owner.comm != kNoComm ? owner.comm : match_.channels[owner.channel].comm) == Library::kMpi;
    });
  }

  /// A cycle that only the common end of several batches closes. One batch against single calls progresses part by part.
  bool couples_batches(const ReplayResult& stalled, const Cause& cause) const {
    std::set<std::int32_t> ranks;
    for (const BlockedOperation& blocked : stalled.blocked) {
      if (!std::ranges::binary_search(cause.stuck, blocked.stuck)) continue;
      const auto& operations = job_.program(blocked.program).operations;
      const std::uint32_t launch = operations[blocked.operation].launch;
      if (launch == 0) continue;
      const bool several = std::ranges::count(operations, launch, &Operation::launch) > 1;
      if (several) ranks.insert(job_.program(blocked.program).rank);
    }
    return ranks.size() > 1;
  }

  const Describer& describe_;
  const Job& job_;
  const MatchResult& match_;
  const std::span<const BlockingModel> models_;
  ModelReplays& replays_;
  ReplayResult other_replay_;  // under options that are not kept
};

}  // namespace

std::optional<Finding> model_finding(const Describer& describe, std::span<const BlockingModel> models, ModelReplays& replays) {
  return ModelFindings(describe, models, replays).find();
}

}  // namespace lockstep
