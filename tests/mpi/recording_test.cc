// What is recorded of correct programs: every call once, with what it said, and equal on all ranks where it
// must be.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "check_traces.h"
#include "compare_traces.h"
#include "mpi_runs.h"

namespace lockstep::shim_test {
namespace {

// Ranks print when they like.
std::multiset<std::string> sorted_lines(const std::string& text) {
  std::multiset<std::string> result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) result.insert(line);
  return result;
}

class Recording : public testing::TestWithParam<Implementation> {
 protected:
  /// Runs with and without the recorder; both must say and end the same. The traces of the run with it.
  std::vector<ReadTrace> record(int ranks, const std::string& program,
                                const std::vector<std::string>& words = {}) {
    const HostRun without = run_mpi(GetParam(), ranks, program, words, {});
    const HostRun with = run_mpi(GetParam(), ranks, program, words, recorded_into(directory_.path()));
    EXPECT_EQ(with.status, without.status) << with.err;
    EXPECT_EQ(sorted_lines(with.out), sorted_lines(without.out));
    std::vector<ReadTrace> traces = read_traces(directory_.path());
    EXPECT_EQ(traces.size(), static_cast<std::size_t>(ranks));
    for (const ReadTrace& trace : traces) EXPECT_EQ(trace.problems, std::vector<std::string>{});
    return traces;
  }
  TemporaryDirectory directory_;
};

std::vector<const ReadCall*> of_kind(const ReadTrace& trace, OpKind kind) {
  std::vector<const ReadCall*> calls;
  for (const ReadCall& call : trace.calls) {
    if (call.kind() == kind) calls.push_back(&call);
  }
  return calls;
}

TEST_P(Recording, OfATourIsCompleteAndAgrees) {
  const std::vector<ReadTrace> traces = record(4, "tour");
  ASSERT_EQ(traces.size(), 4U);
  EXPECT_EQ(first_differences(traces), "");
  EXPECT_EQ(stuck_calls(traces), "");
  for (const ReadTrace& trace : traces) {
    std::map<std::string, int> kinds;
    for (const ReadCall& call : trace.calls) ++kinds[std::string(op_name(call.kind()))];
    const bool in_pair = trace.header.job_rank < 2;
    const std::map<std::string, int> expected{{"init", 1},
                                              {"finalize", 1},
                                              {"all_reduce", 1},
                                              {"all_gather", 1},
                                              {"gather", 1},
                                              {"scatter", 1},
                                              {"all_to_all_v", 1},
                                              {"scan", 1},
                                              {"irecv", 1},
                                              {"isend", 2},
                                              {"wait", 3},
                                              {"send", 2},
                                              {"probe", 1},
                                              {"recv", 1},
                                              {"barrier", in_pair ? 5 : 4},
                                              {"test", 1},
                                              {"split", 1},
                                              {"dup", 1},
                                              {"cart_create", 1},
                                              {"free", in_pair ? 4 : 3},
                                              {"broadcast", 9},
                                              {"opaque", 5}};
    auto with_group = expected;
    if (in_pair) with_group["create_group"] = 1;
    EXPECT_EQ(kinds, with_group);
    EXPECT_EQ(trace.header.exit_status, 0);
    EXPECT_EQ(trace.header.finalized, 2U);
    EXPECT_EQ(trace.header.job_ranks, 4);
  }
}

TEST_P(Recording, ResolvesWildcardsAndMatchedProbes) {
  for (const ReadTrace& trace : record(4, "tour")) {
    const std::int32_t left = (trace.header.job_rank + 3) % 4;
    const auto sends = of_kind(trace, OpKind::kSend);
    ASSERT_EQ(sends.size(), 2U);
    EXPECT_EQ(sends[0]->half.peer, left);
    EXPECT_EQ(sends[0]->half.tag, 8U);
    EXPECT_EQ(sends[0]->half.flags, trace::kCallAnySource | trace::kCallAnyTag);
    EXPECT_EQ(sends[1]->record.peer, trace::kProcNull);
    EXPECT_EQ(of_kind(trace, OpKind::kProbe)[0]->record.peer, left);
    EXPECT_EQ(of_kind(trace, OpKind::kRecv)[0]->record.peer, left);
    EXPECT_EQ(of_kind(trace, OpKind::kRecv)[0]->record.aux, 9U);
    EXPECT_EQ(of_kind(trace, OpKind::kRecv)[0]->record.comm, 1U);
  }
}

TEST_P(Recording, NamesRequestsInTheirCompletion) {
  for (const ReadTrace& trace : record(2, "tour")) {
    const auto receive = of_kind(trace, OpKind::kIrecv)[0]->record.detail;
    const auto sends = of_kind(trace, OpKind::kIsend);
    const auto waits = of_kind(trace, OpKind::kWait);
    ASSERT_EQ(waits.size(), 3U);
    const std::vector<std::uint32_t> both{static_cast<std::uint32_t>(receive),
                                          static_cast<std::uint32_t>(sends[0]->record.detail)};
    EXPECT_EQ(waits[0]->requests, both);
    EXPECT_EQ(waits[1]->record.detail, sends[1]->record.detail);
    const auto tests = of_kind(trace, OpKind::kTest);
    EXPECT_EQ(tests[0]->record.detail, of_kind(trace, OpKind::kBarrier)[0]->record.aux);
    EXPECT_NE(tests[0]->record.flags & trace::kCallSucceeded, 0);
  }
}

TEST_P(Recording, ComparesDatatypesBySignature) {
  for (const ReadTrace& trace : record(2, "tour")) {
    const auto calls = of_kind(trace, OpKind::kBroadcast);
    ASSERT_EQ(calls.size(), 9U);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(trace.datatypes.at(calls[static_cast<std::size_t>(i)]->record.datatype).first, "MPI_INT");
      EXPECT_EQ(calls[static_cast<std::size_t>(i)]->record.count, 12U);
    }
    for (int i = 4; i < 6; ++i) {
      EXPECT_EQ(trace.datatypes.at(calls[static_cast<std::size_t>(i)]->record.datatype).first,
                "{MPI_INT,MPI_DOUBLE}");
      EXPECT_EQ(calls[static_cast<std::size_t>(i)]->record.count, 3U);
    }
    EXPECT_EQ(calls[6]->record.count, 5000U);
    for (int i = 7; i < 9; ++i) {
      EXPECT_EQ(trace.datatypes.at(calls[static_cast<std::size_t>(i)]->record.datatype).first,
                "{MPI_INT,MPI_DOUBLE,MPI_INT}");
      EXPECT_EQ(calls[static_cast<std::size_t>(i)]->record.count, 2U);
    }
  }
}

TEST_P(Recording, GivesCommunicatorsOneIdentityOnAllMembers) {
  const std::vector<ReadTrace> traces = record(4, "tour");
  ASSERT_EQ(traces.size(), 4U);
  std::map<std::uint64_t, std::vector<std::int32_t>> holders;
  std::map<std::uint64_t, std::vector<std::int32_t>> members;
  for (const ReadTrace& trace : traces) {
    for (const auto& [id, comm] : trace.comms) {
      holders[comm.record.identity].push_back(trace.header.job_rank);
      members[comm.record.identity] = comm.members;
      ASSERT_LT(static_cast<std::size_t>(comm.record.rank), comm.members.size());
      EXPECT_EQ(comm.members[static_cast<std::size_t>(comm.record.rank)], trace.header.job_rank);
    }
  }
  // World, grid, the pair, two halves and their copies, four selves.
  EXPECT_EQ(holders.size(), 11U);
  for (auto& [identity, ranks] : holders) {
    std::vector<std::int32_t> expected = members[identity];
    std::ranges::sort(expected);
    EXPECT_EQ(ranks, expected);
  }
  EXPECT_EQ(traces[0].comm_names.size(), 1U);
}

TEST_P(Recording, CallsLibraryFunctionsWithoutARuleByTheirName) {
  for (const ReadTrace& trace : record(2, "tour")) {
    std::vector<std::string> names;
    for (const ReadCall* call : of_kind(trace, OpKind::kOpaque)) names.push_back(call->name);
    EXPECT_EQ(names, (std::vector<std::string>{"MPI_Win_create", "MPI_Win_fence", "MPI_Win_free",
                                               "MPI_Send_init", "MPI_Start"}));
  }
}

TEST_P(Recording, OfFortranHasEveryCallOnceAndTheProgramsOwnCallSites) {
  for (const std::string program : {"fortran_mpi", "fortran_f08"}) {
    if (!std::filesystem::exists(std::string(LOCKSTEP_MPI_BIN) + "/" + program + "." + GetParam().name)) {
      GTEST_SKIP() << "no Fortran compiler for " << GetParam().name;
    }
    const TemporaryDirectory directory;
    const HostRun run = run_mpi(GetParam(), 2, program, {}, recorded_into(directory.path()));
    EXPECT_EQ(run.status, 0) << run.err;
    const std::vector<ReadTrace> traces = read_traces(directory.path());
    ASSERT_EQ(traces.size(), 2U);
    EXPECT_EQ(first_differences(traces), "");
    for (const ReadTrace& trace : traces) {
      std::string kinds;
      for (const ReadCall& call : trace.calls) {
        kinds += std::string(op_name(call.kind())) + " ";
        const ReadSite& site = trace.sites.at(call.record.call_site);
        EXPECT_NE(site.module.find(program), std::string::npos) << site.module;
      }
      EXPECT_EQ(kinds, "init all_reduce split barrier all_reduce irecv send wait send free finalize ");
    }
  }
}

TEST_P(Recording, MarksWhatCrossesTwoGroups) {
  const std::vector<ReadTrace> traces = record(4, "two_groups");
  ASSERT_EQ(traces.size(), 4U);
  std::set<std::uint64_t> identities;
  for (const ReadTrace& trace : traces) {
    const auto created = of_kind(trace, OpKind::kIntercommCreate);
    ASSERT_EQ(created.size(), 1U);
    const ReadComm& both = trace.comms.at(created[0]->record.aux);
    EXPECT_NE(both.record.flags & trace::kCommInter, 0);
    EXPECT_EQ(both.record.nranks, 2);
    identities.insert(both.record.identity);
    const auto broadcasts = of_kind(trace, OpKind::kBroadcast);
    ASSERT_EQ(broadcasts.size(), 1U);
    EXPECT_NE(broadcasts[0]->record.flags & trace::kCallInterComm, 0);
    EXPECT_EQ(broadcasts[0]->record.comm, both.record.comm);
    const std::int32_t roots[] = {trace::kRootHere, 0, trace::kProcNull, 0};
    EXPECT_EQ(broadcasts[0]->record.peer, roots[trace.header.job_rank]);
    EXPECT_EQ(trace.comms.at(of_kind(trace, OpKind::kIntercommMerge)[0]->record.aux).record.nranks, 4);
  }
  EXPECT_EQ(identities.size(), 1U);
  EXPECT_EQ(first_differences(traces), "");
}

TEST_P(Recording, SeesBehindAProgramsOwnWrappersOnce) {
  for (const ReadTrace& trace : record(2, "own_wrappers")) {
    EXPECT_EQ(of_kind(trace, OpKind::kBarrier).size(), 3U);
    EXPECT_EQ(of_kind(trace, OpKind::kAllReduce).size(), 1U);
  }
}

TEST_P(Recording, MarksAnAbort) {
  const TemporaryDirectory directory;
  run_mpi(GetParam(), 2, "aborted_by_one_rank", {}, recorded_into(directory.path()));
  const std::vector<ReadTrace> traces = read_traces(directory.path());
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].header.aborted, 0U);
  EXPECT_EQ(traces[1].header.aborted, 1U);
  EXPECT_EQ(traces[1].header.abort_code, 9);
  EXPECT_EQ(traces[1].calls.back().kind(), OpKind::kAbort);
}

TEST_P(Recording, PutsAllRanksOfALaunchIntoOneRunAndLaunchesApart) {
  const TemporaryDirectory directory;
  for (int i = 0; i < 2; ++i) run_mpi(GetParam(), 2, "tour", {}, recorded_into(directory.path()));
  std::map<std::string, int> runs;
  for (const std::string& path : find_traces(directory.path())) {
    ++runs[std::filesystem::path(path).parent_path().filename().string()];
  }
  ASSERT_EQ(runs.size(), 2U);
  for (const auto& [name, files] : runs) EXPECT_EQ(files, 2) << name;
}

struct Shape {
  int pipe;
  int data;
};
const Shape kShapes[] = {{2, 1}, {3, 1}, {4, 1}, {2, 2}, {3, 2}};

int calls_on_model(const ReadTrace& trace) {
  int calls = 0;
  for (const ReadCall& call : trace.calls) {
    const auto name = trace.comm_names.find(call.record.comm);
    calls += name != trace.comm_names.end() && name->second == "model" && is_collective(call.kind());
  }
  return calls;
}

TEST_P(Recording, OfTheFoundingHangShowsBothCountsAndPositions) {
  for (const Shape& shape : kShapes) {
    const int ranks = shape.pipe * shape.data;
    const auto expected_calls = [&](const ReadTrace& trace) {
      const bool last_stage = trace.header.job_rank / shape.data == shape.pipe - 1;
      return last_stage ? 3 : 4;
    };
    const TemporaryDirectory base;
    std::string directory;
    std::vector<ReadTrace> traces;
    // Ranks that share a busy core may need longer to come to where they hang.
    for (const std::string timeout : {"4", "15", "60"}) {
      directory = base.path() + "/" + timeout;
      const std::vector<std::string> words{"--pipe",      std::to_string(shape.pipe),
                                           "--data",      std::to_string(shape.data),
                                           "--partition", "embed",
                                           "--timeout",   timeout,
                                           "--norm",      "per-group"};
      const HostRun run = run_mpi(GetParam(), ranks, "zero1_hang", words, recorded_into(directory));
      EXPECT_NE(run.status, 0);  // 75 of a rank, or that of those the launcher then killed
      EXPECT_NE(run.err.find("giving up"), std::string::npos);
      traces = read_traces(directory);
      ASSERT_EQ(traces.size(), static_cast<std::size_t>(ranks));
      if (std::ranges::all_of(traces, [&](const ReadTrace& t) { return calls_on_model(t) == expected_calls(t); })) break;
    }
    for (const ReadTrace& trace : traces) EXPECT_EQ(calls_on_model(trace), expected_calls(trace));
    // The report says the same, and where the call is made.
    EXPECT_EQ(verdict_on(directory), "deadlock count_differs_by_local_state");
    const std::string report = report_on(directory);
    EXPECT_NE(report.find("get_grad_norm_direct"), std::string::npos) << report;
    EXPECT_NE(report.find("makes 4"), std::string::npos) << report;
    EXPECT_NE(report.find("makes 3"), std::string::npos) << report;
  }
}

TEST_P(Recording, OfTheRepairedStepAgrees) {
  for (const Shape& shape : kShapes) {
    const std::vector<std::string> words{"--pipe",      std::to_string(shape.pipe),
                                         "--data",      std::to_string(shape.data),
                                         "--partition", "embed",
                                         "--timeout",   "30",
                                         "--norm",      "fused"};
    const TemporaryDirectory directory;
    const HostRun run =
        run_mpi(GetParam(), shape.pipe * shape.data, "zero1_hang", words, recorded_into(directory.path()));
    EXPECT_EQ(run.status, 0) << run.err;
    const std::vector<ReadTrace> traces = read_traces(directory.path());
    EXPECT_EQ(first_differences(traces), "");
    EXPECT_EQ(stuck_calls(traces), "");
    EXPECT_EQ(verdict_on(directory.path()), "consistent");
  }
}

INSTANTIATE_TEST_SUITE_P(Mpi, Recording, testing::ValuesIn(implementations()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lockstep::shim_test
