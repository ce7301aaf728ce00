// What a stricter model shows of laxer ones, against replays of each.
#include "replay/model_replays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "match/match.h"
#include "support/evidence.h"
#include "support/fault.h"
#include "support/random_job.h"
#include "support/random_nccl_job.h"
#include "support/sketch.h"

namespace lockstep::testing {
namespace {

using Calls = std::vector<std::pair<ProgramIndex, std::uint32_t>>;

Calls blocked_calls(const ReplayResult& result) {
  Calls calls;
  for (const BlockedOperation& blocked : result.blocked) calls.emplace_back(blocked.program, blocked.operation);
  return calls;
}

struct Seen {
  int finished = 0;  ///< under `blocking`
  int stuck = 0;     ///< under a laxer one
};

void expect_what_replay_says(const JobSketch& sketch, Seen& seen) {
  const Job job = build_job(sketch);
  const MatchResult matched = match(job);
  // All of them, also where it is known that some do not differ.
  constexpr BlockingModel kModels[] = {BlockingModel::kLazy, BlockingModel::kEager, BlockingModel::kBlocking,
                                       BlockingModel::kCoupled};
  for (const bool groups : {false, true}) {
    ModelReplays replays(job, matched, kModels);
    for (const BlockingModel model : kModels) {
      const ReplayResult alone = replay(job, matched, {.model = model, .groups_as_written = groups});
      EXPECT_EQ(blocked_calls(replays.of(model, groups)), blocked_calls(alone)) << blocking_model_name(model) << "\n"
                                                                                << to_job_json(sketch);
      if (model == BlockingModel::kBlocking) seen.finished += alone.finished() ? 1 : 0;
      if (model != BlockingModel::kBlocking) seen.stuck += alone.finished() ? 0 : 1;
    }
  }
}

TEST(ModelReplays, AreThoseOfEachModelAlone) {
  Seen seen;
  for (std::uint64_t seed = 0; seed < 400 && !HasFailure(); ++seed) {
    const RandomJobOptions small{.max_ranks = 8, .max_communicators = 4, .max_events = 24};
    for (const JobSketch& correct : {random_correct_job(seed, small), random_nccl_job(seed)}) {
      expect_what_replay_says(correct, seen);
      JobSketch faulted = correct;
      Random random(seed);
      if (!inject_fault(faulted, random)) continue;
      expect_what_replay_says(faulted, seen);
      expect_what_replay_says(as_hung(faulted), seen);
      expect_what_replay_says(with_completed_rank(faulted, 0), seen);
    }
  }
  EXPECT_GT(seen.finished, 500);
  EXPECT_GT(seen.stuck, 500);
}

}  // namespace
}  // namespace lockstep::testing
