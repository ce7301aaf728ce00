// The real library, with the recorder before it and without: the same answers, to the letter.
#include <gtest/gtest.h>

#include "read_trace.h"
#include "run_host.h"

namespace lockstep::shim_test {
namespace {

#ifdef ABI_HOST

void expect_same(const std::vector<std::string>& command) {
  const TemporaryDirectory traces;
  const HostRun plain = run_host(command);
  const HostRun recorded = run_host(command, {.env = recorded_into(traces.path())});
  ASSERT_EQ(plain.status, 0) << plain.out << plain.err;
  EXPECT_EQ(recorded.status, 0);
  EXPECT_EQ(recorded.signal, 0);
  EXPECT_EQ(recorded.out, plain.out);
  EXPECT_EQ(recorded.err, plain.err);
  EXPECT_NE(plain.out.find("version 2"), std::string::npos) << plain.out;
}

TEST(NcclAbi, LinkedLibraryAnswersTheSame) { expect_same({ABI_HOST}); }
TEST(NcclAbi, OpenedLibraryAnswersTheSame) { expect_same({ABI_HOST, NCCL_LIBRARY}); }

TEST(NcclAbi, RefusedCallsAreRecordedWithTheirResults) {
  const TemporaryDirectory traces;
  const HostRun run = run_host({ABI_HOST}, {.env = recorded_into(traces.path())});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::vector<std::string> files = find_traces(traces.path());
  ASSERT_EQ(files.size(), 1U);
  const ReadTrace trace = read_trace(files[0]);
  EXPECT_TRUE(trace.problems.empty()) << trace.problems.front();
  std::map<std::pair<OpKind, int>, int> seen;
  for (const ReadCall& call : trace.calls) {
    EXPECT_TRUE(call.returned()) << describe(trace, call);
    ++seen[{call.kind(), call.record.result}];
  }
  EXPECT_EQ((seen[{OpKind::kAllReduce, 4}]), 3);
  // ncclBcast calls ncclBroadcast; each was called three times by the program.
  EXPECT_EQ((seen[{OpKind::kBroadcast, 4}]), 6);
  EXPECT_EQ((seen[{OpKind::kGroupStart, 0}]), 5);
  EXPECT_EQ((seen[{OpKind::kGroupEnd, 5}]), 1);
  EXPECT_EQ(trace.library.substr(0, 5), "NCCL ");
}

#else
TEST(NcclAbi, NeedsALibrary) { GTEST_SKIP() << "no libnccl.so.2 is installed"; }
#endif

#ifdef CUDA_HOST
TEST(CudaAbi, RuntimeAnswersTheSame) {
  const TemporaryDirectory traces;
  const HostRun plain = run_host({CUDA_HOST});
  const HostRun recorded = run_host({CUDA_HOST}, {.env = recorded_into(traces.path())});
  ASSERT_EQ(plain.status, 0) << plain.out << plain.err;
  EXPECT_EQ(recorded.status, 0);
  EXPECT_EQ(recorded.out, plain.out);
  EXPECT_EQ(recorded.err, plain.err);
  EXPECT_TRUE(find_traces(traces.path()).empty());  // nothing communicated
}
#else
TEST(CudaAbi, NeedsALibrary) { GTEST_SKIP() << "no libcudart is installed"; }
#endif

TEST(NcclCost, NothingOnThePathAllocates) {
  const TemporaryDirectory traces;
  const HostRun run = run_host({NCCL_ALLOC_HOST}, {.env = recorded_into(traces.path())});
  EXPECT_EQ(run.out, "allocations 0\n") << run.err;
  EXPECT_EQ(find_traces(traces.path()).size(), 1U);
}

}  // namespace
}  // namespace lockstep::shim_test
