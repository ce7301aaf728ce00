// Random NCCL programs with a fault, run on the stand-in in every mode and judged by the analyzer.
// Usage: standin_truth [PROGRAMS [FIRST_SEED [DIRECTORY]]]; DIRECTORY receives, as Job JSON, each program whose verdict a run
// contradicts. Exit status 1 if there are any.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "support/fault.h"
#include "support/job_text.h"
#include "support/random_nccl_job.h"
#include "truth/truth.h"

namespace lockstep::testing {
namespace {

int run(int programs, std::uint64_t first_seed, const std::string& directory) {
  const auto begin = std::chrono::steady_clock::now();
  std::map<std::string, int> verdicts;
  std::map<std::string, int> wrong;
  int judged = 0;
  int skipped = 0;
  int stuck = 0;
  for (std::uint64_t seed = first_seed; judged + skipped < programs; ++seed) {
    JobSketch sketch = random_nccl_job(seed);
    Random random(seed);
    const auto fault = inject_fault(sketch, random);
    if (!fault) continue;
    const std::string json = to_job_json(sketch);
    const Comparison comparison = compare_with_truth(job_from_json(json));
    if (comparison.skipped) {
      ++skipped;
      continue;
    }
    ++judged;
    stuck += comparison.stuck ? 1 : 0;
    ++verdicts[(comparison.stuck ? "stuck " : "ended ") + comparison.verdict];
    if (comparison.wrong.empty()) continue;
    ++wrong[comparison.wrong];
    std::printf("seed %llu (%s): %s; ", static_cast<unsigned long long>(seed), fault->what.c_str(), comparison.wrong.c_str());
    for (const Truth truth : comparison.truths) std::printf("%c", truth_name(truth)[0]);
    std::printf("\n");
    if (!directory.empty()) std::ofstream(directory + "/seed" + std::to_string(seed) + ".json") << json;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%d programs, %d of them stand still, %d refused by NCCL; %.1f programs/s, each in %zu modes\n", judged, stuck,
              skipped, (judged + skipped) / seconds, kTruthModes.size());
  for (const auto& [verdict, count] : verdicts) std::printf("  %-24s %d\n", verdict.c_str(), count);
  for (const auto& [what, count] : wrong) std::printf("contradicted: %s: %d\n", what.c_str(), count);
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  return lockstep::testing::run(argc > 1 ? std::atoi(argv[1]) : 2000, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0,
                                argc > 3 ? argv[3] : "");
}
