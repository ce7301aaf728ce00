// The text report: what it says first, and that it stays on one screen.
#include "report/text.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "report/printable.h"
#include "support/sample_reports.h"

namespace lockstep {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(ReportText, PutsCauseWaitsAndCountsOfADeadlockInOrder) {
  EXPECT_EQ(report_text(deadlock_report()),
            "DEADLOCK  ranks 0 and 1 wait for each other\n"
            "  rank 0  all_reduce  #3 on model  [0,1]  reduce_over_model zero.py:1459 < grad_norm  waits for rank 1\n"
            "  rank 1  broadcast   #0 on pipe   [0,1]  share_loss engine.py:531                    waits for rank 0\n"
            "cause   calls on model [0,1] differ: rank 0 makes 4, rank 1 makes 3; grad_norm makes one for each optimizer "
            "group and\n        the ranks own different numbers of them\n"
            "fix     add up locally over all groups first and reduce once, or keep empty groups on every rank\n"
            "counts  model [0,1]: rank 0 makes 4, rank 1 makes 3\n"
            "        model [0,1] from grad_norm zero.py:1509: rank 0 makes 2, rank 1 makes 1\n"
            "where   rank 0: host n1 pid 4711 local rank 0 device GPU 0\n"
            "class   count_differs_by_local_state, certain (models: lazy, eager, blocking); lockstep explain says more\n"
            "seen in run.rank0.jsonl:55, run.rank1.jsonl:29\n"
            "live    stalled 8s: no rank has entered or left a call since\n"
            "run     founding, attempt 1; not read: older\n");
}

TEST(ReportText, CutsThePlaceOfCountsAndNotTheNumbers) {
  Report report = deadlock_report();
  report.findings.front().counts[1].call_site = "train.py:36 in " + std::string(150, 'f');
  const auto lines = lines_of(report_text(report));
  const auto counts = std::ranges::find_if(lines, [](const std::string& line) { return contains(line, "train.py:36"); });
  ASSERT_NE(counts, lines.end());
  EXPECT_TRUE(counts->ends_with("f...: rank 0 makes 2, rank 1 makes 1")) << *counts;
  EXPECT_EQ(display_width(*counts), 120U);
}

TEST(ReportText, NamesOneOutlierAmongThousands) {
  const auto lines = lines_of(report_text(large_imbalance_report()));
  EXPECT_LE(lines.size(), 24U);
  EXPECT_EQ(lines[0], "IMBALANCE  rank 7 exited before all_reduce #12 on world, 4095 ranks wait for it");
  EXPECT_EQ(lines[1], "  rank 7            exited with status 0");
  EXPECT_EQ(lines[2], "  ranks 0-6,8-4095  all_reduce  #12 on world  [0-4095]  step train.py:88  wait for rank 7");
}

TEST(ReportText, ShowsArgumentsWhereTheyDiffer) {
  const std::string text = report_text(size_report());
  EXPECT_TRUE(contains(text, "  rank 1  all_reduce  #5 on dp  [0,1]  f32[409598] sum\n"
                             "  rank 0  all_reduce  #5 on dp  [0,1]  f32[409600] sum\n")) << text;
}

TEST(ReportText, LeadsWithTheSummaryWhereNothingDecides) {
  const auto lines = lines_of(report_text(consistent_report()));
  EXPECT_EQ(lines[0], "CONSISTENT  2 ranks made the same 40 calls on 3 communicators and ended");
  EXPECT_EQ(lines[1], "note    unsafe: ranks 0 and 1 both send before they receive");
}

TEST(ReportText, SaysWhichRanksLeftNoRecord) {
  const std::string text = report_text(other_cause_report());
  EXPECT_TRUE(text.starts_with("OTHER CAUSE  rank 3 ran out of memory")) << text;
  EXPECT_TRUE(contains(text, "warning 4 ranks expected, 3 seen; no record of rank 2\n")) << text;
  EXPECT_TRUE(contains(text, "next    the kernel log of node-17\n")) << text;
}

TEST(ReportText, StaysOnOneScreenAndEscapesWhateverTheInputs) {
  const std::string text = report_text(hostile_report());
  const auto lines = lines_of(text);
  EXPECT_LE(lines.size(), 24U) << text;
  for (const std::string& line : lines) {
    EXPECT_LE(display_width(line), 120U) << line;
    EXPECT_EQ(printable(line), line);
  }
}

TEST(ReportText, KeepsTheScreenForEverySample) {
  for (const Report& report : sample_reports())
    for (const bool colour : {false, true}) {
      const std::string text = report_text(report, {.colour = colour});
      EXPECT_LE(std::ranges::count(text, '\n'), 24);
      EXPECT_EQ(contains(text, "\x1b["), colour);
    }
}

TEST(LeadingFinding, IsTheFirstThatDecides) {
  Report report = consistent_report();
  EXPECT_EQ(leading_finding(report), nullptr);
  report.findings.push_back(size_report().findings[0]);
  EXPECT_EQ(leading_finding(report), &report.findings[1]);
}

}  // namespace
}  // namespace lockstep
