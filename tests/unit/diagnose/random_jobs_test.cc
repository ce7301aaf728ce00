// Random correct jobs are not accused; with a fault they are flagged, mostly with the right ranks and
// position. The long version, with the list of what is not right, is tests/bench/random_jobs_full.cc.
#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "support/engine_check.h"
#include "support/evidence.h"
#include "support/fault.h"
#include "support/oracle.h"
#include "support/random_nccl_job.h"
#include "support/random_trial.h"

namespace lockstep::testing {
namespace {

constexpr std::uint64_t kJobs = 400;

TEST(RandomJobs, TheOracleFindsCorrectJobsCorrect) {
  for (std::uint64_t seed = 0; seed < kJobs; ++seed) {
    const OracleVerdict verdict = ask_oracle(build_job(random_correct_job(seed)));
    EXPECT_FALSE(verdict.wrong) << "seed " << seed << ": " << verdict.reason;
    for (const OracleModel model : {OracleModel::kLazy, OracleModel::kEager, OracleModel::kBlocking}) {
      EXPECT_FALSE(verdict.stuck(model)) << "seed " << seed;
    }
  }
}

TEST(RandomJobs, MatchAndReplayAgreeWithTheOracle) {
  for (std::uint64_t seed = 0; seed < kJobs; ++seed) {
    const JobSketch correct = random_correct_job(seed);
    EXPECT_EQ(engine_against_oracle(build_job(correct)), "") << "seed " << seed;
    const auto faulted = draw_wrong_job(correct, seed);
    if (!faulted) continue;
    EXPECT_EQ(engine_against_oracle(build_job(faulted->job)), "")
        << "seed " << seed << ", " << faulted->fault.what;
    EXPECT_EQ(engine_against_oracle(build_job(as_hung(faulted->job))), "")
        << "seed " << seed << ", " << faulted->fault.what;
  }
}

/// Every second communicator becomes MPI's: its calls are made one by one, on no stream.
void hand_to_mpi(JobSketch& job) {
  for (std::size_t c = 1; c < job.communicators.size(); c += 2) job.communicators[c].library = Library::kMpi;
  for (auto& program : job.programs) {
    for (SketchOp& op : program) {
      if (op.comm < 0 || job.communicators[static_cast<std::size_t>(op.comm)].library != Library::kMpi) continue;
      op.launch = 0;
      op.stream.clear();
    }
  }
}

TEST(RandomJobs, NcclAloneAndBesideMpiAgreesWithTheOracle) {
  for (std::uint64_t seed = 0; seed < kJobs; ++seed) {
    JobSketch job = random_nccl_job(seed);
    Random random(seed);
    const auto fault = seed % 4 == 0 ? std::nullopt : inject_fault(job, random);
    const std::string what = fault ? fault->what : "correct";
    EXPECT_EQ(engine_against_oracle(build_job(job)), "") << "seed " << seed << ", " << what;
    hand_to_mpi(job);
    EXPECT_EQ(engine_against_oracle(build_job(job)), "") << "seed " << seed << ", beside MPI, " << what;
  }
}

TEST(RandomJobs, CorrectJobsAreNotAccused) {
  for (std::uint64_t seed = 0; seed < kJobs; ++seed) {
    EXPECT_EQ(false_accusation(random_correct_job(seed), seed), "") << "seed " << seed;
  }
}

TEST(RandomJobs, FaultsAreFlaggedWithTheRightRanksAndPosition) {
  int faults = 0;
  int ranks_right = 0;
  int position_right = 0;
  for (std::uint64_t seed = 0; seed < kJobs; ++seed) {
    const JobSketch correct = random_correct_job(seed);
    const auto faulted = draw_wrong_job(correct, seed);
    if (!faulted) continue;
    ++faults;
    const Judgement judgement =
        judge(correct, faulted->job, faulted->fault, diagnose(build_job(faulted->job)));
    EXPECT_TRUE(judgement.flagged) << "seed " << seed << ", " << faulted->fault.what << ": "
                                   << faulted->reason;
    ranks_right += judgement.ranks_right ? 1 : 0;
    position_right += judgement.position_right ? 1 : 0;
  }
  EXPECT_GT(faults, static_cast<int>(kJobs) * 9 / 10);
  EXPECT_GE(ranks_right * 100, faults * 95) << ranks_right << " of " << faults;
  EXPECT_GE(position_right * 100, faults * 95) << position_right << " of " << faults;
}

}  // namespace
}  // namespace lockstep::testing
