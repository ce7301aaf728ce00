// Each small faulty program leaves a trace that shows its fault, under every MPI; its correct twin leaves one
// that shows none.
#include <gtest/gtest.h>

#include "check_traces.h"
#include "compare_traces.h"
#include "mpi_runs.h"

namespace lockstep::shim_test {
namespace {

struct Fault {
  const char* program;
  int ranks;
  const char* verdict;      ///< of `lockstep check`, with the class of the leading finding
  const char* differences;      ///< as first_differences says it
  const char* stuck = nullptr;  ///< as stuck_calls says it, where it does not depend on the implementation
};

// A rank that leaves by _exit may have been killed: that is no verdict on its calls.
// "finalize" differences follow from MPI_Finalize being a collective on the world, too.
const Fault kFaults[] = {
    {"skip_collective", 2, "mismatch kind_differs", "MPI_COMM_WORLD#0 all_reduce|barrier"},
    {"extra_collective", 2, "mismatch kind_differs", "MPI_COMM_WORLD#1 barrier|finalize"},
    {"order_swapped", 2, "order order_differs", "MPI_COMM_WORLD#0 broadcast|all_reduce"},
    {"kind_differs", 2, "mismatch kind_differs", "MPI_COMM_WORLD#0 all_reduce|reduce"},
    {"root_differs", 2, "mismatch root_differs", "MPI_COMM_WORLD#0 broadcast|broadcast"},
    {"count_differs", 2, "mismatch size_differs", "MPI_COMM_WORLD#0 broadcast|broadcast"},
    {"type_differs", 2, "mismatch datatype_differs", "MPI_COMM_WORLD#0 all_reduce|all_reduce"},
    {"operator_differs", 2, "mismatch reduction_differs", "MPI_COMM_WORLD#0 all_reduce|all_reduce"},
    {"user_operator_differs", 2, "mismatch reduction_differs", "MPI_COMM_WORLD#0 all_reduce|all_reduce"},
    {"early_exit", 2, "insufficient", nullptr},
    {"loop_count_differs", 2, "mismatch kind_differs", "MPI_COMM_WORLD#3 all_reduce|barrier"},
    {"communicator_mixed_up", 2, "order order_across_communicators",
     "comm3#0 barrier|-; comm4#0 -|barrier", "0:barrier 1:barrier"},
    {"cross_communicator_order", 2, "order order_across_communicators",
     "comm3#0 barrier|-; comm4#0 -|barrier", "0:barrier 1:barrier"},
    {"send_send", 2, "deadlock message_order", "", "0:ssend 1:ssend"},
    {"large_send_send", 2, "deadlock message_order", "", "0:send 1:send"},
    {"receive_receive", 2, "deadlock message_order", "", "0:recv 1:recv"},
    {"ring_of_receives", 3, "deadlock message_order", "", "0:recv 1:recv 2:recv"},
    {"tag_differs", 2, "deadlock message_unmatched", nullptr},
    {"source_differs", 3, "deadlock message_unmatched", nullptr},
    {"message_never_received", 2, "imbalance message_unmatched", nullptr},
    {"blocking_meets_nonblocking", 2, "mismatch kind_differs", "MPI_COMM_WORLD#0 barrier|barrier"},
    {"split_skipped", 2, "mismatch kind_differs", "MPI_COMM_WORLD#0 split|barrier"},
    {"finalize_early", 2, "mismatch kind_differs", "MPI_COMM_WORLD#0 all_reduce|finalize"},
    {"gather_v_counts_differ", 2, "mismatch size_differs", "MPI_COMM_WORLD#0 all_gather_v|all_gather_v"},
    {"all_to_all_v_counts_differ", 6, "mismatch size_differs", nullptr},
    {"reduce_scatter_counts_differ", 2, "mismatch size_differs",
     "MPI_COMM_WORLD#0 reduce_scatter_v|reduce_scatter_v"},
    {"collective_meets_receive", 2, "deadlock order_across_communicators",
     "MPI_COMM_WORLD#0 barrier|-", "0:barrier 1:recv"},
    {"signature_differs", 2, "mismatch size_differs", "MPI_COMM_WORLD#0 broadcast|broadcast"},
    {"aborted_by_one_rank", 2, "imbalance never_arrived", "MPI_COMM_WORLD#0 barrier|-"},
    {"wait_before_send", 2, "deadlock message_order", "", "0:wait 1:wait"},
    {"free_skipped", 2, "imbalance call_skipped", nullptr},
};

class Faults : public testing::TestWithParam<std::tuple<Implementation, Fault>> {};

TEST_P(Faults, LeaveATraceThatShowsThem) {
  const auto& [implementation, fault] = GetParam();
  const TemporaryDirectory directory;
  const HostRun run =
      run_mpi(implementation, fault.ranks, fault.program, {}, recorded_into(directory.path()));
  // Open MPI's launcher now and then stays on a busy machine after its ranks have ended themselves; it is not recorded.
  EXPECT_FALSE(run.timed_out) << run.err;
  const std::vector<ReadTrace> traces = read_traces(directory.path());
  ASSERT_EQ(traces.size(), static_cast<std::size_t>(fault.ranks)) << run.err;
  for (const ReadTrace& trace : traces) EXPECT_EQ(trace.problems, std::vector<std::string>{});
  if (fault.differences != nullptr) {
    EXPECT_EQ(first_differences(traces), fault.differences);
  }
  if (fault.stuck != nullptr) {
    EXPECT_EQ(stuck_calls(traces), fault.stuck);
  }
  EXPECT_TRUE(verdict_on(directory.path()).starts_with(fault.verdict)) << verdict_on(directory.path());
}

TEST_P(Faults, HaveACorrectTwinThatAgrees) {
  const auto& [implementation, fault] = GetParam();
  const TemporaryDirectory directory;
  const HostRun run =
      run_mpi(implementation, fault.ranks, fault.program, {"correct"}, recorded_into(directory.path()));
  EXPECT_EQ(run.status, 0) << run.err;
  const std::vector<ReadTrace> traces = read_traces(directory.path());
  ASSERT_EQ(traces.size(), static_cast<std::size_t>(fault.ranks)) << run.err;
  for (const ReadTrace& trace : traces) {
    EXPECT_EQ(trace.problems, std::vector<std::string>{});
    EXPECT_EQ(trace.header.end, trace::ProcessEnd::kExited);
    EXPECT_EQ(trace.header.finalized, 2U);
  }
  EXPECT_EQ(first_differences(traces), "");
  EXPECT_EQ(stuck_calls(traces), "");
  EXPECT_EQ(verdict_on(directory.path()), "consistent");
}

INSTANTIATE_TEST_SUITE_P(Mpi, Faults,
                         testing::Combine(testing::ValuesIn(implementations()), testing::ValuesIn(kFaults)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param).program;
                         });

}  // namespace
}  // namespace lockstep::shim_test
