// match and replay against the oracle on larger small worlds than the test has time for.
// Usage: small_worlds_full [all | NAME]; "all" adds the worlds that take minutes, NAME ("pair tags") takes
// those whose name begins with it. Exit status 1 where they disagree anywhere.
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

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
  bool takes_minutes = false;
};

constexpr WorldCase kWorlds[] = {
    {Shape::kPair, Alphabet::kOrder, 4, 4},
    {Shape::kPair, Alphabet::kMixed, 4, 4, true},
    {Shape::kPair, Alphabet::kMessages, 4, 4},
    {Shape::kPair, Alphabet::kArguments, 4, 4},
    {Shape::kPair, Alphabet::kMini, 4, 8},
    {Shape::kChain, Alphabet::kOrder, 4, 4},
    {Shape::kChain, Alphabet::kMessages, 4, 4},
    {Shape::kChain, Alphabet::kMixed, 4, 4, true},
    {Shape::kNested, Alphabet::kOrder, 4, 4},
    {Shape::kNested, Alphabet::kArguments, 4, 4},
    {Shape::kNested, Alphabet::kMessages, 4, 4, true},
    {Shape::kNested, Alphabet::kMixed, 3, 3},
    {Shape::kPair, Alphabet::kTags, 4, 4},
    {Shape::kNested, Alphabet::kTags, 3, 3},
    {Shape::kPair, Alphabet::kGroups, 4, 4},
    {Shape::kNested, Alphabet::kGroups, 3, 3},
    {Shape::kNested, Alphabet::kMini, 2, 6},
    {Shape::kChain, Alphabet::kMini, 3, 9},
};

std::size_t check(const WorldCase& c) {
  const SmallWorld world = small_world(c.shape, c.alphabet, c.max_per_rank, c.max_in_job);
  std::size_t failures = 0;
  std::size_t jobs = 0;
  std::map<std::string, std::size_t> sorts;  // of disagreement: library, model
  const auto start = std::chrono::steady_clock::now();
  for (const Library library : {Library::kUnknown, Library::kTorch, Library::kNccl, Library::kMpi}) {
    if (!makes_sense(c.alphabet, library)) continue;
    jobs += for_each_job(world, library, [&](const JobSketch& plain) {
      for (const JobSketch& job : {plain, as_recorded(plain), with_completed_rank(plain, 0)}) {
        std::string wrong = engine_against_oracle(build_job(job));
        // The third state contradicts itself where the job hangs: what to conclude from it is not the
        // oracle's to say.
        const bool contradicts = job.programs[0] != plain.programs[0] && &job != &plain;
        if (wrong.empty() && !contradicts) wrong = diagnosis_against_oracle(build_job(job));
        if (wrong.empty()) continue;
        ++failures;
        const std::string sort = std::string(library_name(library)) + " " + wrong.substr(0, wrong.find(':'));
        if (++sorts[sort] <= 2) std::printf("DISAGREE %s\n%s", wrong.c_str(), to_job_json(job).c_str());
      }
    });
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%-62s %9zu jobs x 3 states of completion, %zu disagreements, %.1f s\n", world.name.c_str(),
              jobs, failures, seconds.count());
  for (const auto& [sort, count] : sorts) std::printf("  %s: %zu\n", sort.c_str(), count);
  std::fflush(stdout);
  return failures;
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  using namespace lockstep::testing;
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  std::size_t failures = 0;
  for (const WorldCase& c : kWorlds) {
    const std::string name = small_world(c.shape, c.alphabet, c.max_per_rank, c.max_in_job).name;
    const bool named = !wanted.empty() && name.starts_with(wanted);
    if (named || wanted == "all" || (wanted.empty() && !c.takes_minutes)) failures += check(c);
  }
  std::printf("disagreements: %zu\n", failures);
  return failures == 0 ? 0 : 1;
}
