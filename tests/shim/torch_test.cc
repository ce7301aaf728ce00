// torch.distributed on gloo under the recorder: what stands in the traces, and that the program says the same as without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <set>
#include <string>

#include "read_trace.h"
#include "run_host.h"

namespace lockstep::shim_test {
namespace {

constexpr const char* kPython = "/usr/bin/python3";

bool has_torch() {
  static const bool found = run_host({kPython, "-c", "import torch.distributed as d; exit(not d.is_gloo_available())"}).status == 0 ||
                            run_host({kPython, "-c", "import torch.distributed as d; exit(not d.is_available())"}).status == 0;
  return found;
}

HostRun run_torch(const std::string& mode, const std::string& traces, int ranks = 2) {
  HostOptions options;
  options.timeout_s = 120;
  if (!traces.empty()) {
    options.env = recorded_into(traces);
    options.env.emplace_back("LOCKSTEP_RUN", "torch");
  }
  return run_host({kPython, std::string(SHIM_TEST_DIR) + "/hosts/torch_host.py", mode, std::to_string(ranks)}, options);
}

class Torch : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_torch()) GTEST_SKIP() << "no torch with gloo for " << kPython;
  }
  /// The traces of `mode`, by rank; the program must have said what it says without us.
  std::vector<ReadTrace> record(const std::string& mode, int ranks = 2) {
    // Most of the time goes into importing torch.
    auto without = std::async(std::launch::async, [&] { return run_torch(mode, "", ranks); });
    const HostRun recorded = run_torch(mode, directory_.path(), ranks);
    const HostRun alone = without.get();
    EXPECT_EQ(recorded.out, alone.out);
    EXPECT_EQ(recorded.err, alone.err);
    EXPECT_EQ(recorded.status, alone.status);
    std::vector<ReadTrace> traces;
    for (const std::string& path : find_traces(directory_.path())) traces.push_back(read_trace(path));
    std::ranges::sort(traces, {}, [](const ReadTrace& trace) { return trace.header.job_rank; });
    for (const ReadTrace& trace : traces) EXPECT_EQ(trace.problems, std::vector<std::string>{});
    return traces;
  }

 private:
  TemporaryDirectory directory_;
};

std::vector<ReadCall> of_kind(const ReadTrace& trace, OpKind kind) {
  std::vector<ReadCall> calls;
  std::ranges::copy_if(trace.calls, std::back_inserter(calls), [kind](const ReadCall& call) { return call.kind() == kind; });
  return calls;
}

std::vector<std::string> functions_at(const ReadTrace& trace, const ReadCall& call) {
  std::vector<std::string> functions;
  if (const auto site = trace.python_sites.find(call.record.call_site); site != trace.python_sites.end()) {
    for (const ReadFrame& frame : site->second) functions.push_back(frame.function);
  }
  return functions;
}

TEST_F(Torch, EveryCallHasItsGroupItsArgumentsAndItsPythonLines) {
  const std::vector<ReadTrace> traces = record("calls");
  ASSERT_EQ(traces.size(), 2U);
  for (const ReadTrace& trace : traces) {
    const auto reductions = of_kind(trace, OpKind::kAllReduce);
    ASSERT_EQ(reductions.size(), 7U);
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(reductions[i].record.count, 3U);
      EXPECT_EQ(trace.datatypes.at(reductions[i].record.datatype).first, "torch.float32");
      EXPECT_EQ(trace.redops.at(reductions[i].record.redop).first, i % 2 == 0 ? "ReduceOp.SUM" : "ReduceOp.MAX");
      const auto functions = functions_at(trace, reductions[i]);
      ASSERT_GE(functions.size(), 4U);
      EXPECT_NE(std::ranges::find(functions, "reduce_twice"), functions.end());
    }
    EXPECT_EQ(reductions[0].record.call_site, reductions[2].record.call_site) << "one place in the program, one site";
    EXPECT_NE(reductions[0].record.call_site, reductions[1].record.call_site);
    EXPECT_NE(reductions[6].record.comm, reductions[0].record.comm);
    EXPECT_EQ(trace.comms.at(reductions[6].record.comm).members, (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(of_kind(trace, OpKind::kBroadcast).at(0).record.peer, 1);
    EXPECT_EQ(of_kind(trace, OpKind::kBroadcast).at(0).record.count, 5U);
    EXPECT_EQ(of_kind(trace, OpKind::kAllGather).size(), 3U) << "two of them inside all_gather_object";
    EXPECT_EQ(functions_at(trace, of_kind(trace, OpKind::kAllGather)[0]).at(1), "all_gather_object");
    EXPECT_EQ(trace.redops.at(of_kind(trace, OpKind::kReduce).at(0).record.redop).first, "ReduceOp.MIN");
    const auto waits = of_kind(trace, OpKind::kWait);
    EXPECT_EQ(waits.size(), 14U) << "one for each call";
    for (const ReadCall& wait : waits) EXPECT_TRUE(wait.returned() && wait.record.detail != 0 && wait.record.result == 0);
  }
  EXPECT_EQ(of_kind(traces[0], OpKind::kIsend).at(0).record.aux, 3U);
  EXPECT_EQ(of_kind(traces[1], OpKind::kIrecv).at(0).record.peer, 0);
  ASSERT_EQ(traces[0].comms.size(), 3U);
  for (const auto& [id, comm] : traces[0].comms) EXPECT_EQ(comm.record.identity, traces[1].comms.at(id).record.identity);
  ASSERT_EQ(traces[0].comm_ends.size(), 2U) << "both groups are gone";
  for (const auto& [id, end] : traces[0].comm_ends) EXPECT_EQ(end.fingerprint, traces[1].comm_ends.at(id).fingerprint);
}

TEST_F(Torch, MakingAGroupIsACallOfAllRanksOfTheDefaultGroup) {
  const std::vector<ReadTrace> traces = record("calls");
  ASSERT_EQ(traces.size(), 2U);
  for (const ReadTrace& trace : traces) {
    const auto init = of_kind(trace, OpKind::kInit);
    ASSERT_EQ(init.size(), 1U);
    EXPECT_EQ(trace.comms.at(init[0].record.comm).name, "init");
    EXPECT_EQ(trace.comms.at(init[0].record.comm).members, (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(trace.comms.at(init[0].record.aux).record.kind, static_cast<std::uint8_t>(OpKind::kInit));
    const auto made = of_kind(trace, OpKind::kNewGroup);
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(made[0].record.comm, init[0].record.aux);
    EXPECT_EQ(made[0].creation.members, 2);
    EXPECT_EQ(functions_at(trace, made[0]).at(0), "calls");
    const ReadComm& group = trace.comms.at(made[0].record.aux);
    EXPECT_EQ(group.name, "1");
    EXPECT_EQ(group.record.flags & trace::kCommAdopted, 0) << "all calls on it were seen";
    EXPECT_EQ(of_kind(trace, OpKind::kDestroy).size(), 1U);
  }
}

TEST_F(Torch, TheRankThatTheProgramGivesIsTheRankOfTheJob) {
  const std::vector<ReadTrace> traces = record("swapped");
  ASSERT_EQ(traces.size(), 2U);
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    const ReadTrace& trace = traces[static_cast<std::size_t>(rank)];
    EXPECT_EQ(trace.header.job_rank, rank);
    EXPECT_EQ(trace.process.env_rank, 1 - rank);
    EXPECT_EQ(trace.comms.at(of_kind(trace, OpKind::kBroadcast).at(0).record.comm).record.rank, rank);
  }
}

TEST_F(Torch, RanksThatTheProgramSpawnsAreOneRun) {
  const TemporaryDirectory directory;
  const std::string traces = directory.path() + "/traces";
  HostOptions options;
  options.timeout_s = 120;
  options.env = recorded_into(traces);
  options.env.emplace_back("GLOO_SOCKET_IFNAME", "lo");
  const HostRun run = run_host({kPython, std::string(SHIM_TEST_DIR) + "/hosts/torch_spawn.py", directory.path()}, options);
  EXPECT_EQ(run.out, "both ended\n") << run.err;
  std::set<std::string> runs;
  std::set<std::int32_t> ranks;
  for (const std::string& path : find_traces(traces)) {
    const ReadTrace trace = read_trace(path);
    runs.insert(std::filesystem::path(path).parent_path());
    ranks.insert(trace.header.job_rank);
    EXPECT_EQ(trace.header.job_ranks, 2);
  }
  EXPECT_EQ(runs.size(), 1U);
  EXPECT_EQ(ranks, (std::set<std::int32_t>{0, 1}));
}

TEST_F(Torch, AnExceptionEndsACallThatNothingElseKnowsToBeOver) {
  setenv("LOCKSTEP_PYTHON", "0", 1);  // no method of Python around the call that could tell
  const std::vector<ReadTrace> traces = record("exception");
  unsetenv("LOCKSTEP_PYTHON");
  ASSERT_EQ(traces.size(), 2U);
  for (const ReadTrace& trace : traces) {
    EXPECT_EQ(trace.header.state & trace::kStateNested, 0U);
    ASSERT_EQ(of_kind(trace, OpKind::kBroadcast).size(), 1U);
    EXPECT_EQ(of_kind(trace, OpKind::kBroadcast)[0].record.result, 255);
    EXPECT_EQ(of_kind(trace, OpKind::kAllReduce).size(), 1U) << "made after it, from deeper in the stack";
    for (const ReadCall& call : trace.calls) EXPECT_TRUE(call.returned()) << describe(trace, call);
  }
}

struct Undisturbed {
  const char* mode;
  std::size_t traces;
};
void PrintTo(const Undisturbed& c, std::ostream* out) { *out << c.mode; }

class TorchHost : public Torch, public testing::WithParamInterface<Undisturbed> {};

TEST_P(TorchHost, NoticesNothing) {
  const std::vector<ReadTrace> traces = record(GetParam().mode);
  ASSERT_EQ(traces.size(), GetParam().traces);
  for (const ReadTrace& trace : traces) {
    EXPECT_FALSE(trace.calls.empty());
    for (const ReadCall& call : trace.calls) EXPECT_TRUE(call.returned()) << describe(trace, call);
    EXPECT_EQ(trace.header.state & trace::kStateNested, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, TorchHost,
                         testing::Values(Undisturbed{"exception", 2}, Undisturbed{"os_exit", 2}, Undisturbed{"threads", 2},
                                         Undisturbed{"data_loader", 2}, Undisturbed{"interrupt", 2}, Undisturbed{"left_alone", 2}),
                         [](const auto& test) { return std::string(test.param.mode); });

TEST_F(Torch, CallsOfDdpsReducerNameTheBucketAndTheLineOfTheBackwardPass) {
  const std::vector<ReadTrace> traces = record("ddp");
  ASSERT_EQ(traces.size(), 2U);
  for (const ReadTrace& trace : traces) {
    std::vector<std::string> buckets;
    std::vector<std::uint64_t> counts;
    for (const ReadCall& call : of_kind(trace, OpKind::kAllReduce)) {
      const auto functions = functions_at(trace, call);
      ASSERT_GE(functions.size(), 2U);
      EXPECT_NE(std::ranges::find(functions, "ddp"), functions.end());
      buckets.push_back(functions[0].substr(functions[0].rfind("bucket ")));
      counts.push_back(call.record.count);
    }
    EXPECT_EQ(buckets.at(0), "bucket 1 of 1");
    EXPECT_EQ(counts.at(0), 6 * (512U * 512 + 512)) << "one bucket until they are rebuilt";
    ASSERT_GT(buckets.size(), 3U);
    const std::string all = std::to_string((buckets.size() - 1) / 2);
    EXPECT_EQ((std::vector<std::string>{buckets[1], buckets[2]}), (std::vector<std::string>{"bucket 1 of " + all, "bucket 2 of " + all}));
    const auto waits = of_kind(trace, OpKind::kWait);
    EXPECT_EQ(waits.back().requests.size() + (waits.back().requests.empty() ? 1 : 0), (buckets.size() - 1) / 2)
        << "the end of the backward pass waits for every bucket";
  }
}

}  // namespace
}  // namespace lockstep::shim_test
