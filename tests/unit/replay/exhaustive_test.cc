// match, replay and diagnose against the slow oracle on all jobs of small worlds: up to 3 ranks, 2
// communicators, 4 calls. tests/bench/small_worlds_full.cc has larger ones.
#include <gtest/gtest.h>

#include <algorithm>
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

/// Each job three times: nothing known about completion, as recorded in a run, and with one rank that
/// completed all.
TEST_P(SmallWorlds, AgreeWithTheOracleInEveryJob) {
  const auto& [c, library] = GetParam();
  const SmallWorld world = small_world(c.shape, c.alphabet, c.max_per_rank, c.max_in_job);
  int failures = 0;
  const std::size_t jobs = for_each_job(world, library, [&](const JobSketch& plain) {
    const auto expect_none = [&](const JobSketch& job, const std::string& wrong) {
      if (!wrong.empty() && ++failures <= 3)
        ADD_FAILURE() << world.name << ": " << wrong << "\n" << to_job_json(job);
    };
    for (const JobSketch& job : {plain, as_recorded(plain), with_completed_rank(plain, 0)}) {
      expect_none(job, engine_against_oracle(build_job(job)));
    }
    // Not the third state: it contradicts itself where the job hangs, and what to conclude is not the
    // oracle's to say.
    for (const JobSketch& job : {plain, as_recorded(plain)})
      expect_none(job, diagnosis_against_oracle(build_job(job)));
  });
  EXPECT_GT(jobs, 100U);
}

constexpr WorldCase kWorlds[] = {
    {Shape::kPair, Alphabet::kOrder, 2, 4},       {Shape::kChain, Alphabet::kOrder, 2, 4},
    {Shape::kNested, Alphabet::kOrder, 2, 3},     {Shape::kPair, Alphabet::kArguments, 2, 3},
    {Shape::kNested, Alphabet::kArguments, 1, 3}, {Shape::kPair, Alphabet::kMessages, 2, 4},
    {Shape::kNested, Alphabet::kMessages, 1, 3},  {Shape::kPair, Alphabet::kMixed, 2, 3},
    {Shape::kPair, Alphabet::kTags, 2, 4},        {Shape::kPair, Alphabet::kGroups, 2, 4},
    {Shape::kNested, Alphabet::kGroups, 1, 3},    {Shape::kNested, Alphabet::kMini, 4, 4},
    {Shape::kChain, Alphabet::kMini, 4, 4},       {Shape::kPair, Alphabet::kStreams, 3, 4},
    {Shape::kPair, Alphabet::kSorted, 2, 4},      {Shape::kPair, Alphabet::kMeetings, 3, 5},
};
constexpr Library kLibraries[] = {Library::kUnknown, Library::kTorch, Library::kNccl, Library::kMpi};

std::vector<std::tuple<WorldCase, Library>> combinations() {
  std::vector<std::tuple<WorldCase, Library>> result;
  for (const WorldCase& world : kWorlds) {
    for (const Library library : kLibraries) {
      if (makes_sense(world.alphabet, library)) result.emplace_back(world, library);
    }
  }
  return result;
}

std::string case_name(const ::testing::TestParamInfo<std::tuple<WorldCase, Library>>& info) {
  const auto& [c, library] = info.param;
  const std::string world = small_world(c.shape, c.alphabet, c.max_per_rank, c.max_in_job).name;
  std::string name = world.substr(0, world.find(',')) + " " + std::string(library_name(library));
  std::ranges::replace(name, ' ', '_');
  return name + (library == Library::kUnknown ? "unknown" : "");
}

INSTANTIATE_TEST_SUITE_P(All, SmallWorlds, ::testing::ValuesIn(combinations()), case_name);

}  // namespace
}  // namespace lockstep::testing
