// The short version of bench/standin_truth: random programs, correct and with a fault, run and judged.
#include <gtest/gtest.h>

#include "support/fault.h"
#include "support/job_text.h"
#include "support/random_nccl_job.h"
#include "truth/truth.h"

namespace lockstep::testing {
namespace {

TEST(StandinTruth, CorrectProgramsEndInEveryMode) {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const std::string json = to_job_json(random_nccl_job(seed));
    const Job job = job_from_json(json);
    for (const TruthMode& mode : kTruthModes) {
      if (std::string_view(mode.resident) == "1") continue;  // correct programs may need two at once
      EXPECT_EQ(truth_name(run_truth(job, mode)), "ended") << mode.groups << " " << mode.p2p << "\n" << json;
    }
  }
}

TEST(StandinTruth, NoVerdictIsContradictedByARun) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    JobSketch sketch = random_nccl_job(seed);
    Random random(seed);
    if (!inject_fault(sketch, random)) continue;
    const std::string json = to_job_json(sketch);
    const Comparison comparison = compare_with_truth(job_from_json(json));
    EXPECT_EQ(comparison.wrong, "") << "seed " << seed << ": " << comparison.verdict << "\n" << json;
  }
}

}  // namespace
}  // namespace lockstep::testing
