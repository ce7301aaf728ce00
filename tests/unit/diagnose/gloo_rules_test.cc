// What holds for torch on gloo and not for NCCL or MPI: no queues, sends that wait for their receive, groups
// that are independent.
#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "support/job_text.h"

namespace lockstep {
namespace {

using testing::make_job;

const testing::GroupList kWorld{{"w", {0, 1}}};

TEST(GlooRules, SendsWaitForTheirReceive) {
  const Report report = diagnose(make_job(
      kWorld, {{"send 1 w f32[4]", "recv 1 w f32[4]"}, {"send 0 w f32[4]", "recv 0 w f32[4]"}}, {}, "gloo"));
  EXPECT_EQ(report.verdict, Verdict::kDeadlock);
  EXPECT_EQ(report.findings.at(0).finding_class, "message_order");
  EXPECT_EQ(report.findings.at(0).severity, Severity::kCertain);
}

/// torch's communicator of NCCL for two ranks runs one after the other: there this hangs.
TEST(GlooRules, MessagesOfAPairDoNotQueue) {
  const std::vector<std::vector<std::string>> lines = {
      {"isend 1 w f32[4] handle=a", "irecv 1 w f32[4] handle=b", "wait handle=a", "wait handle=b"},
      {"isend 0 w f32[4] handle=a", "irecv 0 w f32[4] handle=b", "wait handle=a", "wait handle=b"}};
  EXPECT_EQ(diagnose(make_job(kWorld, lines, {}, "gloo")).verdict, Verdict::kConsistent);
}

TEST(GlooRules, MessagesPairByTag) {
  const std::vector<std::vector<std::string>> lines = {
      {"isend 1 w f32[4] tag=1 handle=a", "isend 1 w f32[8] tag=2 handle=b", "wait handle=a",
       "wait handle=b"},
      {"recv 0 w f32[8] tag=2", "recv 0 w f32[4] tag=1"}};
  EXPECT_EQ(diagnose(make_job(kWorld, lines, {}, "gloo")).verdict, Verdict::kConsistent);
}

TEST(GlooRules, GroupsInAnotherOrderHangOnlyWhereTheHostWaits) {
  const testing::GroupList groups{{"a", {0, 1}}, {"b", {0, 1}}};
  const std::vector<std::vector<std::string>> waiting = {{"all_reduce a f32[1]", "all_reduce b f32[1]"},
                                                         {"all_reduce b f32[1]", "all_reduce a f32[1]"}};
  EXPECT_EQ(diagnose(make_job(groups, waiting, {}, "gloo")).verdict, Verdict::kDeadlock);
  const std::vector<std::vector<std::string>> issued = {
      {"all_reduce a f32[1] handle=x", "all_reduce b f32[1] handle=y", "wait handle=x", "wait handle=y"},
      {"all_reduce b f32[1] handle=x", "all_reduce a f32[1] handle=y", "wait handle=x", "wait handle=y"}};
  EXPECT_EQ(diagnose(make_job(groups, issued, {}, "gloo")).verdict, Verdict::kConsistent);
}

TEST(GlooRules, BlockingAndIssuedCallsMeet) {
  const std::vector<std::vector<std::string>> lines = {{"all_reduce w f32[1] handle=x", "wait handle=x"},
                                                       {"all_reduce w f32[1]"}};
  EXPECT_EQ(diagnose(make_job(kWorld, lines, {}, "gloo")).verdict, Verdict::kConsistent);
}

TEST(GlooRules, RootsMustAgree) {
  const Report report =
      diagnose(make_job(kWorld, {{"broadcast w f32[4] root=0"}, {"broadcast w f32[4] root=1"}}, {}, "gloo"));
  EXPECT_EQ(report.verdict, Verdict::kMismatch);
  EXPECT_EQ(report.findings.at(0).finding_class, "root_differs");
}

}  // namespace
}  // namespace lockstep
