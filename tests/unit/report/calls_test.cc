// The calls of a Job as text.
#include "report/calls.h"

#include <gtest/gtest.h>

#include "model/job_builder.h"

namespace lockstep {
namespace {

// Rank 0 makes two all_reduces and a send on dp, rank 1 one all_reduce and is killed.
Job small_job() {
  JobBuilder builder;
  const std::vector<std::int32_t> members{0, 1};
  const CommIndex dp = builder.communicator("id", "dp", members);
  Operation reduce{.count = Count::of(8), .comm = dp, .datatype = builder.datatype("f32"), .redop = builder.redop("sum"),
                   .kind = OpKind::kAllReduce, .state = OpState::kCompleted};
  reduce.site = builder.site({{{"train.py", "step", 88}}});
  const Operation send{.comm = dp, .peer = 1, .tag = 4, .kind = OpKind::kSend};
  builder.program(0).operations = {reduce, reduce, send};
  builder.program(1).operations = {reduce};
  builder.set_end(0, {EndKind::kExited, 0});
  builder.set_end(1, {EndKind::kKilled, 9});
  return std::move(builder).build();
}

std::string calls_of(const Job& job, ProgramIndex program, const CallFilter& filter) {
  std::string text;
  write_calls(job, job.program(program), filter, [&text](std::string_view piece) {
    text += piece;
    return true;
  });
  return text;
}

TEST(CommunicatorsText, SaysWhereNumbersOfCallsDiffer) {
  EXPECT_EQ(communicators_text(small_job()), "communicators\n  dp  [0,1]  calls differ: rank 0: 2, rank 1: 1\n");
}

TEST(WriteCalls, ShowsEndArgumentsSiteAndState) {
  const Job job = small_job();
  EXPECT_EQ(calls_of(job, ProgramIndex{0}, {}),
            "rank 0: 3 calls, exited with status 0\n"
            "     0  all_reduce  #0  on dp  f32[8] sum  step train.py:88  completed\n"
            "     1  all_reduce  #1  on dp  f32[8] sum  step train.py:88  completed\n"
            "     2  send to 1       on dp                                           tag=4\n");
}

TEST(WriteCalls, ShowsTheLastCallsOnly) {
  const Job job = small_job();
  EXPECT_EQ(calls_of(job, ProgramIndex{0}, {.last = 1}),
            "rank 0: 3 calls, exited with status 0\n     2  send to 1  on dp  tag=4\n");
  EXPECT_EQ(calls_of(job, ProgramIndex{1}, {.last = 0}), "rank 1: 1 calls, killed by signal 9\n");
}

TEST(WriteCalls, StopsWhenTheSinkDoes) {
  const Job job = small_job();
  EXPECT_FALSE(write_calls(job, job.program(ProgramIndex{0}), {}, [](std::string_view) { return false; }));
}

}  // namespace
}  // namespace lockstep
