// The host notices nothing: each program says the same, ends the same, with and without the recorder.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "compare_traces.h"
#include "run_host.h"

namespace lockstep::shim_test {
namespace {

HostRun run_mode(const std::string& mode, const std::vector<std::pair<std::string, std::string>>& env,
                 std::vector<std::string> more = {}) {
  std::vector<std::string> command{SHIM_HOST, mode};
  command.insert(command.end(), more.begin(), more.end());
  HostOptions options;
  options.env = env;
  return run_host(command, options);
}

void expect_same(const HostRun& with, const HostRun& without) {
  EXPECT_EQ(with.out, without.out);
  EXPECT_EQ(with.err, without.err);
  EXPECT_EQ(with.status, without.status);
  EXPECT_EQ(with.signal, without.signal);
  EXPECT_FALSE(with.timed_out);
}

struct Case {
  const char* mode;
  std::size_t traces = 1;
  trace::ProcessEnd end = trace::ProcessEnd::kExited;
  int status = 0;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.mode; }

class HostNoticesNothing : public testing::TestWithParam<Case> {};

TEST_P(HostNoticesNothing, InThisMode) {
  const Case& test = GetParam();
  const TemporaryDirectory directory;
  const HostRun without = run_mode(test.mode, {});
  const HostRun with = run_mode(test.mode, recorded_into(directory.path()));
  expect_same(with, without);
  std::vector<ReadTrace> traces = read_traces(directory.path());
  ASSERT_EQ(traces.size(), test.traces);
  for (const ReadTrace& trace : traces) EXPECT_EQ(trace.problems, std::vector<std::string>{});
  if (!traces.empty()) {
    EXPECT_EQ(traces[0].header.end, test.end);
    if (test.end == trace::ProcessEnd::kExited) {
      EXPECT_EQ(traces[0].header.exit_status, without.status);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, HostNoticesNothing,
                         testing::ValuesIn(std::vector<Case>{
                             {"plain"},
                             {"fork"},
                             {"fork_communicates", 2},
                             {"fork_exec"},
                             {"vfork"},
                             {"posix_spawn"},
                             {"threads"},
                             {"short_threads"},
                             {"atexit"},
                             {"abort", 1, trace::ProcessEnd::kUnknown},
                             {"exit_without_finalize"},
                             {"underscore_exit", 1, trace::ProcessEnd::kUnknown},
                             {"raise", 1, trace::ProcessEnd::kUnknown},
                             {"signals"},
                             {"polls"},
                             {"errno"},
                             {"environment"},
                             {"descriptors"},
                             {"silent", 0},
                             {"jump"},
                             {"throw"},
                             {"strict", 1, trace::ProcessEnd::kUnknown}}),
                         [](const auto& test) { return std::string(test.param.mode); });

TEST(Host, AProcessThatNeverCommunicatesLeavesNothing) {
  const TemporaryDirectory directory;
  const std::string traces = directory.path() + "/traces";
  run_mode("silent", recorded_into(traces));
  HostOptions options;
  options.env = recorded_into(traces);
  EXPECT_EQ(run_host({"sh", "-c", "ls / | wc -l >/dev/null; exit 3"}, options).status, 3);
  EXPECT_FALSE(std::filesystem::exists(traces));
}

TEST(Host, LockstepZeroIsInert) {
  const TemporaryDirectory directory;
  const std::string traces = directory.path() + "/traces";
  auto env = recorded_into(traces);
  env.emplace_back("LOCKSTEP", "0");
  expect_same(run_mode("plain", env), run_mode("plain", {}));
  EXPECT_FALSE(std::filesystem::exists(traces));
}

TEST(Host, ALibraryThatIsLoadedLocallyIsRecordedAndUnloadable) {
  const TemporaryDirectory directory;
  HostOptions options;
  const HostRun without = run_host({PLUGIN_HOST, MPI_PLUGIN}, options);
  ASSERT_EQ(without.status, 0) << without.out;
  options.env = recorded_into(directory.path());
  expect_same(run_host({PLUGIN_HOST, MPI_PLUGIN}, options), without);
  const std::vector<ReadTrace> traces = read_traces(directory.path());
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(std::ranges::count_if(traces[0].calls,
                                  [](const auto& call) { return call.kind() == OpKind::kAllReduce; }),
            20);
}

TEST(Host, NothingIsAllocatedInTheCallPathOrElsewhere) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = recorded_into(directory.path());
  EXPECT_EQ(run_host({ALLOC_HOST}, options).out, "allocations 0\n");
}

TEST(Host, TogetherWithJemalloc) {
  std::string library;
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib/aarch64-linux-gnu/libjemalloc.so.2"}) {
    if (std::filesystem::exists(path)) library = path;
  }
  if (library.empty()) GTEST_SKIP() << "libjemalloc.so.2 is not installed";
  const TemporaryDirectory directory;
  const HostRun without = run_mode("threads", {{"LD_PRELOAD", library}});
  for (const std::string& both :
       {library + ":" + LOCKSTEP_SHIM_LIBRARY, LOCKSTEP_SHIM_LIBRARY + (":" + library)}) {
    expect_same(run_mode("threads", {{"LD_PRELOAD", both}, {"LOCKSTEP_DIR", directory.path()}}), without);
  }
  EXPECT_EQ(read_traces(directory.path()).size(), 2U);
}

TEST(Host, AForkedChildDoesNotWriteToItsParentsTrace) {
  const TemporaryDirectory directory;
  run_mode("fork_communicates", recorded_into(directory.path()));
  std::vector<ReadTrace> traces = read_traces(directory.path());
  ASSERT_EQ(traces.size(), 2U);
  std::ranges::sort(traces, {},
                    [](const auto& trace) { return trace.header.state & trace::kStateForkedFrom; });
  const auto reductions = [](const ReadTrace& trace) {
    return std::ranges::count_if(trace.calls,
                                 [](const auto& call) { return call.kind() == OpKind::kAllReduce; });
  };
  EXPECT_EQ(reductions(traces[0]), 4);
  EXPECT_EQ(reductions(traces[1]), 2);
  EXPECT_EQ(traces[0].header.exit_status, 0);
  EXPECT_EQ(traces[1].header.exit_status, 6);
  EXPECT_NE(traces[0].header.pid, traces[1].header.pid);
}

TEST(Host, EveryThreadsCallsAreThereInOrder) {
  const TemporaryDirectory directory;
  run_mode("threads", recorded_into(directory.path()));
  const std::vector<ReadTrace> traces = read_traces(directory.path());
  ASSERT_EQ(traces.size(), 1U);
  std::map<std::uint32_t, std::vector<std::uint64_t>> ticks;  // by tag: one thread each
  for (const ReadCall& call : traces[0].calls) {
    if (call.kind() == OpKind::kSend) ticks[call.record.aux].push_back(call.record.enter_ticks);
  }
  ASSERT_EQ(ticks.size(), 16U);
  for (const auto& [tag, entered] : ticks) {
    EXPECT_EQ(entered.size(), 2000U);
    EXPECT_TRUE(std::ranges::is_sorted(entered));
  }
}

TEST(Host, CallsThatWereLeftByAJumpDoNotEndTheRecording) {
  for (const char* mode : {"jump", "throw"}) {
    const TemporaryDirectory directory;
    run_mode(mode, recorded_into(directory.path()));
    const std::vector<ReadTrace> traces = read_traces(directory.path());
    ASSERT_EQ(traces.size(), 1U);
    EXPECT_EQ(std::ranges::count_if(traces[0].calls,
                                    [](const auto& call) { return call.kind() == OpKind::kAllReduce; }),
              3);
    EXPECT_NE(traces[0].header.state & trace::kStateNested, 0U);
  }
}

TEST(Host, APollThatIsRepeatedIsOneRecordAndHidesNothing) {
  const TemporaryDirectory directory;
  run_mode("polls", recorded_into(directory.path()));
  const std::vector<ReadTrace> traces = read_traces(directory.path());
  ASSERT_EQ(traces.size(), 1U);
  const auto& calls = traces[0].calls;
  ASSERT_EQ(calls.size(), 1U + 10 * 3);
  for (std::size_t i = 1; i < calls.size(); i += 3) {
    EXPECT_EQ(calls[i].kind(), OpKind::kIsend);
    EXPECT_EQ(calls[i + 1].kind(), OpKind::kIsend);
    const ReadCall& poll = calls[i + 2];
    EXPECT_EQ(poll.kind(), OpKind::kTest);
    EXPECT_EQ(poll.record.count, 10U);
    EXPECT_NE(poll.record.flags & trace::kCallSucceeded, 0);
    EXPECT_EQ(poll.requests,
              (std::vector<std::uint32_t>{static_cast<std::uint32_t>(calls[i].record.detail),
                                          static_cast<std::uint32_t>(calls[i + 1].record.detail)}));
  }
}

TEST(Host, PollsInTurnAreOneRecordEach) {
  const TemporaryDirectory directory;
  run_mode("polls_in_turn", recorded_into(directory.path()));
  const std::vector<ReadTrace> traces = read_traces(directory.path());
  ASSERT_EQ(traces.size(), 1U);
  std::string kinds;
  for (const ReadCall& call : traces[0].calls) kinds += std::string(op_name(call.kind())) + " ";
  EXPECT_EQ(kinds, "init isend isend test test test all_reduce ");
  EXPECT_EQ(traces[0].calls[3].record.count, 1000U);
  EXPECT_EQ(traces[0].calls[4].record.count, 1000U);
}

// Of run_host itself: a launcher of others that hangs after its ranks have ended is not what a test is about.
TEST(Launcher, ThatOutlivesItsChildrenIsEnded) {
  HostOptions options;
  options.is_launcher = true;
  const HostRun run = run_host({"sh", "-c", "sleep 2; exec sleep 50"}, options);
  EXPECT_TRUE(run.outlived_its_children);
  EXPECT_FALSE(run.timed_out);
  EXPECT_EQ(run.signal, SIGKILL);
}

}  // namespace
}  // namespace lockstep::shim_test
