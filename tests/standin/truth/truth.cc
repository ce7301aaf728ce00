// Forks a process for each mode, and compares; see the header.
#include "truth/truth.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include "diagnose/diagnose.h"
#include "hooks.h"
#include "nccl_api.h"
#include "nccl_rank.h"

namespace lockstep::testing {
namespace {

constexpr int kTimeoutMs = 20'000;
enum ChildExit : int { kChildEnded = 0, kChildStuck = 1, kChildRefused = 2, kChildFailed = 3 };

[[noreturn]] void be_world(const Job& job, int ranks, const TruthMode& mode) {
  setenv("LOCKSTEP_REHEARSE_GROUPS", mode.groups, 1);
  setenv("LOCKSTEP_REHEARSE_P2P", mode.p2p, 1);
  setenv("LOCKSTEP_REHEARSE_RESIDENT", mode.resident, 1);
  setenv("LOCKSTEP_REHEARSE_DEVICES", std::to_string(ranks).c_str(), 1);
  static std::vector<nccl::ncclUniqueId> ids(job.communicators().size());
  for (nccl::ncclUniqueId& id : ids) nccl::ncclGetUniqueId(&id);
  const standin::CudaHooks& cuda = *lockstep_standin_cuda_hooks();
  cuda.expect_hosts(ranks);
  static std::atomic<bool> refused{false};
  for (int rank = 0; rank < ranks; ++rank)
    std::thread([&job, &cuda, rank] {
      if (!run_nccl_rank(job, rank, ids, {.device = rank, .check_data = false}).error.empty()) refused = true;
      cuda.host_ended();
    }).detach();
  switch (cuda.settle(kTimeoutMs)) {
    case standin::Settled::kEnded:
      _exit(refused ? kChildRefused : kChildEnded);
    case standin::Settled::kStuck:
      _exit(refused ? kChildRefused : kChildStuck);
    case standin::Settled::kTimedOut:
      break;
  }
  _exit(kChildFailed);
}

}  // namespace

std::string_view truth_name(Truth truth) {
  switch (truth) {
    case Truth::kEnded:
      return "ended";
    case Truth::kStuck:
      return "stuck";
    case Truth::kRefused:
      return "refused";
    case Truth::kFailed:
      return "failed";
  }
  return "";
}

Truth run_truth(const Job& job, const TruthMode& mode) {
  int ranks = 0;
  for (const Program& program : job.programs()) ranks = std::max(ranks, program.rank + 1);
  const pid_t child = fork();
  if (child == 0) be_world(job, ranks, mode);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status)) return Truth::kFailed;
  switch (WEXITSTATUS(status)) {
    case kChildEnded:
      return Truth::kEnded;
    case kChildStuck:
      return Truth::kStuck;
    case kChildRefused:
      return Truth::kRefused;
    default:
      return Truth::kFailed;
  }
}

Comparison compare_with_truth(const Job& job) {
  Comparison comparison;
  for (std::size_t i = 0; i < kTruthModes.size(); ++i) {
    comparison.truths[i] = run_truth(job, kTruthModes[i]);
    comparison.skipped = comparison.skipped || comparison.truths[i] == Truth::kRefused || comparison.truths[i] == Truth::kFailed;
    if (comparison.skipped) return comparison;
  }
  comparison.stuck = comparison.truths[0] == Truth::kStuck;
  const Report report = diagnose(job);
  comparison.verdict = verdict_name(report.verdict);
  const bool certain = std::ranges::any_of(report.findings, [](const Finding& f) { return f.severity == Severity::kCertain; });
  const bool ends_always = std::ranges::all_of(comparison.truths, [](Truth truth) { return truth == Truth::kEnded; });
  if (certain && ends_always) comparison.wrong = "certain, and it ends in every mode";
  else if (report.verdict == Verdict::kConsistent && comparison.stuck)
    comparison.wrong = "consistent, and it stands still";
  else if (report.findings.empty() && comparison.truths[1] == Truth::kStuck)
    comparison.wrong = "nothing found, and it stands still with one collective at a time";
  return comparison;
}

}  // namespace lockstep::testing
