// match and replay against the slow oracle on all jobs of small worlds; tests/bench/small_worlds_full.cc has larger ones.
#include <gtest/gtest.h>

#include <ostream>

#include "support/engine_check.h"
#include "support/evidence.h"
#include "support/small_worlds.h"

namespace lockstep::testing {
namespace {

struct WorldCase {
  Shape shape;
  Alphabet alphabet;
  std::size_t max_per_rank;
  std::size_t max_in_job;
};
void PrintTo(const WorldCase& c, std::ostream* os) {
  *os << small_world(c.shape, c.alphabet, c.max_per_rank, c.max_in_job).name;
}

class SmallWorlds : public ::testing::TestWithParam<std::tuple<WorldCase, Library>> {};

/// Each job three times: nothing known about completion, as recorded in a run, and with one rank that completed all.
TEST_P(SmallWorlds, AgreeWithTheOracleInEveryJob) {
  const auto& [c, library] = GetParam();
  const SmallWorld world = small_world(c.shape, c.alphabet, c.max_per_rank, c.max_in_job);
  int failures = 0;
  const std::size_t jobs = for_each_job(world, library, [&](const JobSketch& plain) {
    for (const JobSketch& job : {plain, as_recorded(plain), with_completed_rank(plain, 0)}) {
      if (failures >= 3) return;
      const std::string wrong = engine_against_oracle(build_job(job));
      if (wrong.empty()) continue;
      ++failures;
      ADD_FAILURE() << world.name << ": " << wrong << "\n" << to_job_json(job);
    }
  });
  EXPECT_GT(jobs, 100U);
}

constexpr WorldCase kWorlds[] = {
    {Shape::kPair, Alphabet::kOrder, 2, 4},     {Shape::kChain, Alphabet::kOrder, 2, 4},
    {Shape::kNested, Alphabet::kOrder, 2, 3},   {Shape::kPair, Alphabet::kArguments, 2, 3},
    {Shape::kNested, Alphabet::kArguments, 1, 3}, {Shape::kPair, Alphabet::kMessages, 2, 4},
    {Shape::kNested, Alphabet::kMessages, 1, 3}, {Shape::kPair, Alphabet::kMixed, 2, 3},
    {Shape::kNested, Alphabet::kMini, 4, 4},    {Shape::kChain, Alphabet::kMini, 4, 4},
};
constexpr Library kLibraries[] = {Library::kUnknown, Library::kTorch, Library::kNccl, Library::kMpi};

std::string case_name(const ::testing::TestParamInfo<std::tuple<WorldCase, Library>>& info) {
  const std::string library(library_name(std::get<1>(info.param)));
  return "World" + std::to_string(info.index / std::size(kLibraries)) + "_" + (library.empty() ? "unknown" : library);
}

INSTANTIATE_TEST_SUITE_P(All, SmallWorlds,
                         ::testing::Combine(::testing::ValuesIn(kWorlds), ::testing::ValuesIn(kLibraries)), case_name);

}  // namespace
}  // namespace lockstep::testing
