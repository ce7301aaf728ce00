// Where traces go: run identity from launchers, attempts, the local disk for network file systems, nothing
// ever overwritten.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "compare_traces.h"
#include "run_host.h"

namespace lockstep::shim_test {
namespace {

namespace fs = std::filesystem;
using Variables = std::vector<std::pair<std::string, std::string>>;

// None of the launchers' variables of whoever runs the tests.
const Variables kNoLauncher{{"PMIX_NAMESPACE", ""},      {"PMI_RANK", ""},     {"SLURM_JOB_ID", ""},
                            {"TORCHELASTIC_RUN_ID", ""}, {"LOCKSTEP_RUN", ""}, {"RANK", ""},
                            {"OMPI_COMM_WORLD_RANK", ""}};

HostRun run_plain(const std::string& directory, const Variables& variables,
                  const std::string& working_directory = "") {
  HostOptions options;
  options.env = kNoLauncher;
  for (const auto& variable : recorded_into(directory)) options.env.push_back(variable);
  for (const auto& variable : variables) options.env.push_back(variable);
  options.directory = working_directory;
  return run_host({SHIM_HOST, "plain"}, options);
}

struct Launch {
  const char* name;
  Variables variables;
  const char* run;
  std::int32_t rank;
  std::int32_t attempt;
};
void PrintTo(const Launch& launch, std::ostream* out) { *out << launch.name; }

class RunDirectory : public testing::TestWithParam<Launch> {};

TEST_P(RunDirectory, IsNamedByTheLauncher) {
  const Launch& launch = GetParam();
  const TemporaryDirectory directory;
  run_plain(directory.path(), launch.variables);
  const auto paths = find_traces(directory.path());
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(fs::path(paths[0]).parent_path().filename(), launch.run);
  const ReadTrace trace = read_trace(paths[0]);
  EXPECT_EQ(trace.run, launch.run);
  EXPECT_EQ(trace.process.env_rank, launch.rank);
  EXPECT_EQ(trace.process.attempt, launch.attempt);
}

INSTANTIATE_TEST_SUITE_P(
    Launchers, RunDirectory,
    testing::Values(Launch{"slurm",
                           {{"SLURM_JOB_ID", "4711"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "3"}},
                           "slurm-4711.0.r0",
                           3,
                           0},
                    Launch{"slurm_restarted",
                           {{"SLURM_JOB_ID", "4711"},
                            {"SLURM_STEP_ID", "0"},
                            {"SLURM_PROCID", "3"},
                            {"SLURM_RESTART_COUNT", "2"}},
                           "slurm-4711.0.r2",
                           3,
                           2},
                    Launch{
                        "torchrun",
                        {{"TORCHELASTIC_RUN_ID", "a b"}, {"TORCHELASTIC_RESTART_COUNT", "1"}, {"RANK", "5"}},
                        "torch-a_b.r1",
                        5,
                        1},
                    Launch{"torchrun_without_id",
                           {{"TORCHELASTIC_RUN_ID", "none"}, {"MASTER_PORT", "29500"}, {"RANK", "0"}},
                           "torch-none-29500.r0",
                           0,
                           0},
                    Launch{"torch_by_hand",
                           {{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29511"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}},
                           "torch-node0-29511.r0",
                           1,
                           0},
                    Launch{"pmix", {{"PMIX_NAMESPACE", "123"}, {"PMIX_RANK", "1"}}, "pmix-123.r0", 1, 0},
                    Launch{"given", {{"LOCKSTEP_RUN", "nightly/../42"}}, "nightly_.._42.r0", -1, 0}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(TraceFiles, AreNeverOverwritten) {
  const TemporaryDirectory directory;
  for (int i = 0; i < 5; ++i) run_plain(directory.path(), {{"LOCKSTEP_RUN", "same"}});
  EXPECT_EQ(find_traces(directory.path()).size(), 5U);
}

TEST(TraceFiles, OfProcessesWithoutALauncherAreRunsOfTheirOwn) {
  const TemporaryDirectory directory;
  for (int i = 0; i < 2; ++i) run_plain(directory.path(), {});
  std::set<std::string> runs;
  for (const std::string& path : find_traces(directory.path())) runs.insert(fs::path(path).parent_path());
  EXPECT_EQ(runs.size(), 2U);
}

TEST(TraceFiles, OfAForkedChildAreInTheRunOfItsParent) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = kNoLauncher;
  for (const auto& variable : recorded_into(directory.path())) options.env.push_back(variable);
  run_host({SHIM_HOST, "fork_communicates"}, options);
  std::multiset<std::string> runs;
  for (const std::string& path : find_traces(directory.path())) runs.insert(fs::path(path).parent_path());
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(*runs.begin(), *runs.rbegin());
}

TEST(TraceFiles, GoToTheWorkingDirectoryByDefault) {
  const TemporaryDirectory directory;
  run_plain("", {{"LD_PRELOAD", LOCKSTEP_SHIM_LIBRARY}, {"LOCKSTEP_RUN", "x"}}, directory.path());
  EXPECT_EQ(find_traces(directory.path() + "/lockstep-trace/x.r0").size(), 1U);
}

TEST(TraceFiles, LieOnTheLocalDiskWithAPointerWhereAsked) {
  const TemporaryDirectory shared;
  const TemporaryDirectory local;
  run_plain(shared.path(), {{"LOCKSTEP_RUN", "x"}, {"LOCKSTEP_LOCAL_DIR", local.path()}});
  EXPECT_EQ(find_traces(shared.path()).size(), 0U);
  const auto traces = find_traces(local.path());
  ASSERT_EQ(traces.size(), 1U);
  std::vector<fs::path> pointers;
  for (const auto& entry : fs::directory_iterator(shared.path() + "/x.r0")) pointers.push_back(entry.path());
  ASSERT_EQ(pointers.size(), 1U);
  EXPECT_EQ(pointers[0].extension(), ".ptr");
  EXPECT_EQ(pointers[0].stem(), fs::path(traces[0]).stem());
  std::ifstream file(pointers[0]);
  std::string version, host, path;
  std::getline(file, version);
  std::getline(file, host);
  std::getline(file, path);
  EXPECT_EQ(version, "lockstep-pointer 1");
  EXPECT_EQ(host, read_trace(traces[0]).host);
  EXPECT_EQ(path, traces[0]);
}

TEST(TraceFiles, HoldNoArgumentsAndNoEnvironment) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = recorded_into(directory.path());
  options.env.emplace_back("SECRET_OF_THE_HOST", "do-not-write-this");
  run_host({SHIM_HOST, "plain", "an-argument-like-a-password"}, options);
  const auto paths = find_traces(directory.path());
  ASSERT_EQ(paths.size(), 1U);
  std::ifstream file(paths[0], std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(content.find("do-not-write-this"), std::string::npos);
  EXPECT_EQ(content.find("SECRET_OF_THE_HOST"), std::string::npos);
  EXPECT_EQ(content.find("an-argument-like-a-password"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::shim_test
