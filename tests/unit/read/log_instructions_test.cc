// Printed instructions of DeepSpeed's schedule: what may be claimed of them, and what not.
#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "read/load.h"
#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

/// Two stages, `steps` optimizer steps of two micro-batches, every rank done at the end.
std::vector<std::string> printed(int steps = 1) {
  std::vector<std::string> lines;
  for (int i = 0; i < steps; ++i) {
    for (const char* line :
         {"0 LoadMicroBatch(buffer_id=0)", "0 ForwardPass(buffer_id=0)", "0 SendActivation(buffer_id=0)", "1 RecvActivation(buffer_id=0)",
          "0 LoadMicroBatch(buffer_id=1)", "1 LoadMicroBatch(buffer_id=0)", "0 ForwardPass(buffer_id=1)", "1 ForwardPass(buffer_id=0)",
          "0 SendActivation(buffer_id=1)", "1 BackwardPass(buffer_id=0)", "0 RecvGrad(buffer_id=0)", "1 RecvActivation(buffer_id=1)",
          "1 SendGrad(buffer_id=0)", "0 BackwardPass(buffer_id=0)", "1 LoadMicroBatch(buffer_id=1)", "1 ForwardPass(buffer_id=1)",
          "1 BackwardPass(buffer_id=1)", "1 SendGrad(buffer_id=1)", "0 RecvGrad(buffer_id=1)", "0 BackwardPass(buffer_id=1)", "0 ReduceTiedGrads()",
          "1 ReduceTiedGrads()", "0 ReduceGrads()", "1 ReduceGrads()", "0 OptimizerStep()", "1 OptimizerStep()", "0 done with schedule",
          "1 done with schedule"})
      lines.emplace_back(line);
  }
  return lines;
}

Report report_of(const std::vector<std::string>& lines) {
  const TempDir directory;
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  const std::string path = directory.write("printed.log", text);
  const auto evidence = load_evidence(std::vector{path});
  EXPECT_TRUE(evidence);
  return diagnose(evidence->job, std::nullopt, evidence->reported);
}

std::string warnings(const Report& report) {
  std::string text;
  for (const std::string& warning : report.input_quality.warnings) text += warning + '\n';
  return text;
}

TEST(LogInstructions, OfRanksThatAreDoneAreConsistentAndTheLayoutIsSaidToBeInferred) {
  for (const int steps : {1, 3}) {
    const Report report = report_of(printed(steps));
    EXPECT_EQ(report.verdict, Verdict::kConsistent);
    EXPECT_NE(warnings(report).find("inferred from who receives and who sends: 2 stages of 1 replica"), std::string::npos) << warnings(report);
  }
}

TEST(LogInstructions, ARankThatNeverLeavesTheStepIsNamedWithoutAVerdict) {
  auto lines = printed();
  lines.erase(lines.end() - 2);  // rank 0 is not done
  const Report report = report_of(lines);
  EXPECT_EQ(report.verdict, Verdict::kInsufficient);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_NE(report.findings[0].title.find("rank 0 is inside"), std::string::npos) << report.findings[0].title;
}

TEST(LogInstructions, ALostLineAccusesNobody) {
  const auto whole = printed(2);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto lines = whole;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
    const Verdict verdict = report_of(lines).verdict;
    EXPECT_TRUE(verdict == Verdict::kInsufficient || verdict == Verdict::kConsistent) << i << ' ' << whole[i];
  }
}

TEST(LogInstructions, ALogThatStopsAnywhereAccusesNobody) {
  const auto whole = printed();
  for (std::size_t kept = 2; kept < whole.size(); ++kept)
    EXPECT_EQ(report_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept)}).verdict, Verdict::kInsufficient) << kept;
}

TEST(LogInstructions, WithoutAFirstAndALastStageTheLayoutIsAskedFor) {
  auto lines = printed();
  for (std::string& line : lines)
    if (line[0] == '0') line[0] = '5';  // ranks 1 and 5 of more
  EXPECT_NE(warnings(report_of(lines)).find("cannot be told from the instructions"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
