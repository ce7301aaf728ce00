// 10,000 random jobs: accusations of correct ones, and how well a fault in each is found.
// Usage: random_jobs_full [JOBS [FIRST_SEED [DIRECTORY]]]; DIRECTORY receives each job that the engine got
// wrong as Job JSON. Exit status 1 for a false accusation, an unflagged fault, or less than 95 % right.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "diagnose/diagnose.h"
#include "support/evidence.h"
#include "support/random_trial.h"

namespace lockstep::testing {
namespace {

struct Tally {
  int faults = 0;
  int flagged = 0;
  int ranks_right = 0;
  int position_right = 0;
  int blames_others = 0;

  void add(const Judgement& judgement) {
    ++faults;
    flagged += judgement.flagged ? 1 : 0;
    ranks_right += judgement.ranks_right ? 1 : 0;
    position_right += judgement.position_right ? 1 : 0;
    blames_others += judgement.blames_others ? 1 : 0;
  }
  double percent(int count) const { return faults == 0 ? 100 : 100.0 * count / faults; }
  void print(const char* name) const {
    std::printf(
        "%-14s %6d faults  flagged %6.2f %%  ranks %6.2f %%  position %6.2f %%  only others blamed %d\n",
        name, faults, percent(flagged), percent(ranks_right), percent(position_right), blames_others);
  }
};

void keep(const std::string& directory, std::uint64_t seed, const char* what, const JobSketch& job) {
  if (directory.empty()) return;
  std::ofstream(directory + "/seed" + std::to_string(seed) + "_" + what + ".json") << to_job_json(job);
}

/// The faulted jobs that stand still, judged again from what such a run leaves behind: less evidence, same
/// question.
class HungJobs {
 public:
  void add(std::uint64_t seed, const JobSketch& correct, const FaultedJob& faulted,
           const std::string& directory) {
    const JobSketch remains = as_hung(faulted.job);
    if (std::ranges::none_of(remains.ends, [](ProgramEnd end) { return end.kind == EndKind::kRunning; }))
      return;
    const Report report = diagnose(build_job(remains));
    const Judgement judgement = judge(correct, faulted.job, faulted.fault, report);
    tally_.add(judgement);
    ++verdicts_[std::string(verdict_name(report.verdict))];
    if (judgement.flagged && judgement.ranks_right && judgement.position_right) return;
    const std::string sort =
        std::string(fault_name(faulted.fault.kind)) + (faulted.fault.message ? " of a message" : "") +
        (judgement.flagged ? "" : ", UNFLAGGED") + (judgement.ranks_right ? "" : ", ranks") +
        (judgement.position_right ? "" : ", position") +
        (judgement.blames_others ? ", only others blamed" : "") + ": " +
        judgement.found.substr(0, judgement.found.find(' '));
    if (++not_right_[sort] > 1) return;  // one example of each sort
    keep(directory, seed, "hung", remains);
    std::printf("as hung, e.g. seed %llu [%s]: %s\n    %s\n    expected: %s\n    found:    %s\n",
                static_cast<unsigned long long>(seed), std::string(library_name(correct.library)).c_str(),
                sort.c_str(), faulted.fault.what.c_str(), judgement.expected.c_str(),
                judgement.found.c_str());
  }

  void print() const {
    tally_.print("\nas hung");
    for (const auto& [verdict, count] : verdicts_) std::printf("  %s: %d\n", verdict.c_str(), count);
    for (const auto& [sort, count] : not_right_) std::printf("  not right %5d  %s\n", count, sort.c_str());
  }

 private:
  Tally tally_;
  std::map<std::string, int> verdicts_;
  std::map<std::string, int> not_right_;
};

int run(std::uint64_t jobs, std::uint64_t first, const std::string& directory) {
  int accusations = 0;
  int harmless = 0;
  Tally all;
  std::map<std::string, Tally> by_kind;
  HungJobs hung;
  std::map<std::string, std::string> wrong;  // by fault kind: one line each
  for (std::uint64_t seed = first; seed < first + jobs; ++seed) {
    const JobSketch correct = random_correct_job(seed);
    if (const std::string accusation = false_accusation(correct, seed); !accusation.empty()) {
      ++accusations;
      std::printf("FALSE ACCUSATION seed %llu: %s\n", static_cast<unsigned long long>(seed),
                  accusation.c_str());
      keep(directory, seed, "correct", correct);
    }
    const auto faulted = draw_wrong_job(correct, seed);
    if (!faulted) {
      ++harmless;
      continue;
    }
    const Judgement judgement =
        judge(correct, faulted->job, faulted->fault, diagnose(build_job(faulted->job)));
    const std::string kind(fault_name(faulted->fault.kind));
    all.add(judgement);
    by_kind[kind].add(judgement);
    hung.add(seed, correct, *faulted, directory);
    if (judgement.flagged && judgement.ranks_right && judgement.position_right) continue;
    keep(directory, seed, "fault", faulted->job);
    wrong[kind] += "seed " + std::to_string(seed) + (judgement.flagged ? "" : " UNFLAGGED") +
                   (judgement.ranks_right ? "" : " ranks") + (judgement.position_right ? "" : " position") +
                   " [" + std::string(library_name(correct.library)) + "] " + faulted->fault.what +
                   "\n    oracle:   " + faulted->reason + "\n    expected: " + judgement.expected +
                   "\n    found:    " + judgement.found + "\n";
  }
  for (const auto& [kind, lines] : wrong) std::printf("\nNOT RIGHT, %s\n%s", kind.c_str(), lines.c_str());
  std::printf("\n%llu jobs from seed %llu; %d false accusations; %d jobs in which no drawn fault does harm\n",
              static_cast<unsigned long long>(jobs), static_cast<unsigned long long>(first), accusations,
              harmless);
  for (const auto& [kind, tally] : by_kind) tally.print(kind.c_str());
  all.print("all");
  hung.print();
  const bool good = accusations == 0 && all.flagged == all.faults && all.percent(all.ranks_right) >= 95 &&
                    all.percent(all.position_right) >= 95;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  const std::uint64_t jobs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
  const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  return lockstep::testing::run(jobs, first, argc > 3 ? argv[3] : "");
}
