// The reference optimizer over MPI: as shipped it hangs and the report says why in its own words; corrected
// it completes and checks consistent; bad arguments end all ranks with a message.
#include <gtest/gtest.h>

#include <fstream>

#include "check_traces.h"
#include "mpi_runs.h"

namespace lockstep::shim_test {
namespace {

class Zero1Pipeline : public testing::TestWithParam<Implementation> {
 protected:
  /// Recorded into directory(). The ranks share few cores: who waits yields.
  HostRun run(int ranks, const std::vector<std::string>& words) {
    auto env = recorded_into(directory_.path());
    env.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
    return run_mpi(GetParam(), ranks, "zero1_pipeline", words, env);
  }
  const std::string& directory() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

TEST_P(Zero1Pipeline, AsShippedHangsAtTheEmbeddingAndTheReportSaysWhy) {
  const HostRun hang =
      run(2, {"--pipe", "2", "--partition", "type:embed", "--norm", "per_group", "--timeout", "8"});
  EXPECT_NE(hang.status, 0);
  EXPECT_NE(hang.err.find("no step finished in time"), std::string::npos) << hang.err;
  EXPECT_EQ(hang.out.find("step "), std::string::npos) << hang.out;
  EXPECT_EQ(verdict_on(directory()), "deadlock count_differs_by_local_state");
  const std::string report = report_on(directory());
  for (const char* words :
       {"get_grad_norm_direct", "makes 3", "makes 2", "2 times", "once", "depends on what the rank owns"})
    EXPECT_NE(report.find(words), std::string::npos) << words << " in\n" << report;
  EXPECT_EQ(report.find("MpiCommunicator"), std::string::npos) << report;
}

TEST_P(Zero1Pipeline, CorrectedCompletesAndIsConsistent) {
  // MPICH's ranks do not yield while they wait: on few cores each step costs them several time slices.
  const int steps = GetParam().name == "openmpi" ? 200 : 20;
  for (const char* norm : {"fused", "agreed_groups"}) {
    const HostRun done = run(2, {"--partition", "type:embed", "--norm", norm, "--steps",
                                 std::to_string(steps), "--timeout", "30"});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_NE(done.out.find("\ndone\n"), std::string::npos) << done.out;
    EXPECT_EQ(verdict_on(directory()), "consistent") << norm;
  }
}

TEST_P(Zero1Pipeline, EqualsItselfInOneProcess) {
  const auto csv_of = [&](int pipe, int data, const std::string& micro_batches) {
    const std::string file = directory() + "/" + std::to_string(pipe) + ".csv";
    const HostRun done =
        run(pipe * data, {"--pipe", std::to_string(pipe), "--data", std::to_string(data), "--micro-batches",
                          micro_batches, "--precision", "fp64", "--steps", "5", "--csv", file, "--timeout",
                          "30", "--reduce", data > 1 ? "reduce_scatter" : "all_reduce"});
    EXPECT_EQ(done.status, 0) << done.err;
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    std::vector<std::string> rows;  // without the time of each step
    while (std::getline(in, line)) rows.push_back(line.substr(0, line.rfind(',')));
    return rows;
  };
  const std::vector<std::string> alone = csv_of(1, 1, "4");
  EXPECT_EQ(alone.size(), 5U);
  EXPECT_EQ(csv_of(2, 2, "2"), alone);  // nine digits of loss and norm
}

TEST_P(Zero1Pipeline, OrderedRunsHaveEqualBits) {
  std::vector<std::string> outputs;
  for (int i = 0; i < 2; ++i) {
    const std::string file = directory() + "/run.csv";
    const HostRun done = run(3, {"--pipe", "1", "--data", "3", "--ordered", "--steps", "5", "--reduce",
                                 i == 0 ? "all_reduce" : "reduce_scatter", "--csv", file, "--timeout", "30"});
    EXPECT_EQ(done.status, 0) << done.err;
    std::ifstream in(file);
    std::string rows;
    for (std::string line; std::getline(in, line);) rows += line.substr(0, line.rfind(',')) + "\n";
    outputs.push_back(rows);
  }
  EXPECT_EQ(outputs[0], outputs[1]);
}

TEST_P(Zero1Pipeline, ANanIsSkippedByAll) {
  const HostRun done = run(2, {"--nan-step", "1", "--nan-rank", "1", "--steps", "3", "--timeout", "30"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.out.find("skipped: a gradient overflowed"), std::string::npos) << done.out;
  EXPECT_EQ(verdict_on(directory()), "consistent");
}

TEST_P(Zero1Pipeline, BadArgumentsEndAllRanksWithAMessage) {
  struct Bad {
    std::vector<std::string> words;
    const char* message;
  };
  for (const Bad& bad :
       {Bad{{"--pipe", "3"}, "needs 3 ranks; 2 were started"}, Bad{{"--norm", "best"}, "--norm"},
        Bad{{"--partition", "at:9"}, "owns layers [9, 9) and no parameters"}}) {
    const HostRun run_of_bad = run(2, bad.words);
    EXPECT_NE(run_of_bad.status, 0);
    EXPECT_FALSE(run_of_bad.timed_out);
    EXPECT_NE(run_of_bad.err.find(bad.message), std::string::npos) << run_of_bad.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Mpi, Zero1Pipeline, testing::ValuesIn(implementations()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lockstep::shim_test
