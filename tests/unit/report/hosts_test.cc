// Which hosts a report hands to scripts that drain nodes.
#include "report/hosts.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Hosts, AreThoseOfTheReportOneALine) {
  Report report{.verdict = Verdict::kOtherCause, .action = Action::kInspectNodes};
  report.action_hosts = {"gpu-07", "gpu-12"};
  EXPECT_EQ(report_hosts(report), "gpu-07\ngpu-12\n");
}

TEST(Hosts, AreNoneWhereCallsAreAtFault) {
  Report report{.verdict = Verdict::kMismatch, .action = Action::kFixCode};
  report.action_hosts = {"gpu-07"};
  EXPECT_EQ(report_hosts(report), "");
}

}  // namespace
}  // namespace lockstep
