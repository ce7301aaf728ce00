#include "read/job_line.h"

#include <fmt/format.h>

#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

/// A Job of rank 0 with these lines and groups mp [0,1] and pp [0,1,2]; rank 1 has none.
Job job_with_lines(const std::vector<std::string>& lines, const std::string& groups = R"("mp": [0,1], "pp": [0,1,2])") {
  std::string text;
  for (const std::string& line : lines) text += fmt::format("{}\"{}\"", text.empty() ? "" : ",\n", line);
  auto job = read_text(fmt::format("{{\"groups\": {{{}}}, \"ranks\": {{\"0\": [\n{}], \"1\": []}}}}", groups, text));
  EXPECT_TRUE(job) << job.error().message;
  return job ? std::move(*job) : Job();
}

std::string comm_name(const Job& job, const Operation& operation) {
  return operation.comm == kNoComm ? "" : job.communicator(operation.comm).name;
}

TEST(JobLine, ReadsACollectiveWithAllItsKeys) {
  const Job job = job_with_lines({"broadcast mp f32[1024] root=1 tag=3 site=step@stage2.py:12 label=norm state=entered at=1.5 "
                                  "counts=1,2 color=4 key=5 thread=t1"});
  ASSERT_EQ(program_of(job, 0).operations.size(), 1U) << all_warnings(job);
  const Operation& operation = program_of(job, 0).operations[0];
  EXPECT_EQ(operation.kind, OpKind::kBroadcast);
  EXPECT_EQ(comm_name(job, operation), "mp");
  EXPECT_EQ(job.datatype(operation.datatype), "f32");
  EXPECT_EQ(operation.count, Count::of(1024));
  EXPECT_EQ(operation.peer, 1);
  EXPECT_EQ(operation.tag, 3U);
  EXPECT_EQ(operation.state, OpState::kEntered);
  EXPECT_EQ(operation.line, 2U);
  EXPECT_FALSE(operation.nonblocking());
  EXPECT_EQ(job.site(operation.site).frames, (std::vector<Frame>{{"stage2.py", "step", 12}}));
  const OperationExtra& extra = job.extra(operation);
  EXPECT_EQ(extra.label, "norm");
  EXPECT_EQ(extra.at, 1.5);
  EXPECT_EQ(extra.counts, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(extra.color, "4");
  EXPECT_EQ(extra.key, "5");
  EXPECT_EQ(extra.thread, "t1");
  EXPECT_EQ(all_warnings(job), "");
  EXPECT_EQ(program_of(job, 0).end, (ProgramEnd{EndKind::kExited, 0}));
}

TEST(JobLine, ReadsCallsOnStreamsEventsAndGraphs) {
  const Job job = job_with_lines({"all_reduce mp f32[1] stream=s", "stream_sync stream=s", "stream_sync s", "device_sync",
                                  "event_record handle=e stream=s", "event_record e s", "event_sync handle=e",
                                  "stream_wait handle=e stream=t", "cudaStreamWaitEvent event=e stream=t",
                                  "graph_launch handle=g stream=s"});
  EXPECT_EQ(all_warnings(job), "");
  const auto& operations = program_of(job, 0).operations;
  ASSERT_EQ(operations.size(), 10U);
  struct Row {
    OpKind kind;
    std::string_view handle, stream;
  };
  const std::vector<Row> expected{
      {OpKind::kStreamSync, "", "s"},   {OpKind::kStreamSync, "", "s"},  {OpKind::kDeviceSync, "", ""},
      {OpKind::kEventRecord, "e", "s"}, {OpKind::kEventRecord, "e", "s"}, {OpKind::kEventSync, "e", ""},
      {OpKind::kStreamWait, "e", "t"},  {OpKind::kStreamWait, "e", "t"},  {OpKind::kGraphLaunch, "g", "s"}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Operation& operation = operations[i + 1];
    EXPECT_EQ(operation.kind, expected[i].kind) << i;
    EXPECT_EQ(job.text(operation.handle), expected[i].handle) << i;
    EXPECT_EQ(job.text(operation.stream), expected[i].stream) << i;
    EXPECT_EQ(operation.comm, kNoComm) << i;
    EXPECT_FALSE(operation.nonblocking()) << i;
  }
}

TEST(JobLine, ExecutesCapturedCallsAtEachLaunchOfTheirGraph) {
  const Job job = job_with_lines({"all_reduce mp f32[1] stream=c flags=captured handle=g",
                                  "batch[send 1 pp f32[2] stream=c flags=captured handle=g; recv 1 pp f32[2] stream=c flags=captured handle=g]",
                                  "graph_launch handle=g stream=s", "all_reduce mp f32[9]", "graph_launch handle=g stream=s state=completed"});
  EXPECT_EQ(all_warnings(job), "");
  std::vector<std::string> executed;
  for (const Operation& operation : program_of(job, 0).operations) {
    if (!takes_effect(operation) || operation.kind == OpKind::kGraphLaunch) continue;
    executed.push_back(fmt::format("{} {} {}{}", op_name(operation.kind), operation.seq, job.text(operation.stream),
                                   operation.launch == 0 ? "" : fmt::format(" launch {}", operation.launch)));
    if (operation.line == 6) {
      EXPECT_EQ(operation.state, OpState::kCompleted);
    }
  }
  EXPECT_EQ(executed, (std::vector<std::string>{"all_reduce 0 s", "send 0 s launch 2", "recv 0 s launch 2", "all_reduce 1 ",
                                                "all_reduce 2 s", "send 0 s launch 3", "recv 0 s launch 3"}));
}

TEST(JobLine, TakesCountsUnderTheNamesOfMpiAndTorch) {
  const Job job = job_with_lines({"all_to_all_v mp f32 counts=1,2 recv_counts=3,4", "MPI_Alltoallv mp f32 sendcounts=1,2 recvcounts=3,4",
                                  "all_to_all_single mp f32 input_split_sizes=[1,2] output_split_sizes=[3,4]"});
  EXPECT_EQ(all_warnings(job), "");
  for (const Operation& operation : program_of(job, 0).operations) {
    EXPECT_EQ(operation.kind, OpKind::kAllToAllV);
    EXPECT_EQ(job.extra(operation).counts, (std::vector<std::uint64_t>{1, 2}));
    EXPECT_EQ(job.extra(operation).recv_counts, (std::vector<std::uint64_t>{3, 4}));
  }
}

TEST(JobLine, TakesArgumentsUnderTheirNames) {
  const Job job = job_with_lines({"all_reduce group=mp dtype=float32 count=6 op=SUM", "dist.all_reduce mp dtype=torch.float32 shape=[2,3] reduce_op=sum",
                                  "isend dst=1 group=pp f32[6] handle=h", "irecv from=1 comm=pp numel=6 dtype=f32",
                                  "batch_isend_irecv[isend 1 pp f32[6]; irecv 1 pp f32[6]]", "new_group mp ranks=0,1",
                                  "all_reduce mp f32[1] async_op=True", "barrier() mp", "all_reduce mp f32[1] redop=PREMUL_SUM(0.25)"});
  EXPECT_EQ(all_warnings(job), "");
  const auto& operations = program_of(job, 0).operations;
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(comm_name(job, operations[i]), "mp");
    EXPECT_EQ(job.datatype(operations[i].datatype), "f32");
    EXPECT_EQ(operations[i].count, Count::of(6));
    EXPECT_EQ(job.redop(operations[i].redop), "sum");
  }
  for (const std::size_t i : {2U, 3U, 4U, 5U}) {
    EXPECT_EQ(operations[i].peer, 1);
    EXPECT_EQ(comm_name(job, operations[i]), "pp");
    EXPECT_EQ(operations[i].count, Count::of(6));
  }
  EXPECT_EQ(operations[4].launch, operations[5].launch);
  EXPECT_EQ(job.extra(operations[6]).members, (std::vector<std::int32_t>{0, 1}));
  EXPECT_TRUE(operations[7].nonblocking());
  EXPECT_EQ(operations[8].kind, OpKind::kBarrier);
  EXPECT_EQ(job.redop(operations[9].redop), "premul_sum");
}

TEST(JobLine, ACallThatTheLibraryRefusedHasNoPosition) {
  const Job job = job_with_lines({"all_reduce mp f32[1] result=4", "all_reduce mp f32[1] result=ncclInProgress", "all_reduce mp f32[1] flags=failed"});
  const auto& operations = program_of(job, 0).operations;
  EXPECT_FALSE(takes_effect(operations[0]));
  EXPECT_TRUE(takes_effect(operations[1]));
  EXPECT_EQ(operations[1].seq, 0U);
  EXPECT_FALSE(takes_effect(operations[2]));
}

TEST(JobLine, KeepsTheLibrarysNameOfACall) {
  const Job job = job_with_lines({"ncclAllReduce mp f32[1] redop=ncclSum", "all_reduce mp f32[1]"});
  const auto& operations = program_of(job, 0).operations;
  EXPECT_EQ(operations[0].kind, OpKind::kAllReduce);
  EXPECT_EQ(job.extra(operations[0]).native_name, "ncclAllReduce");
  EXPECT_EQ(job.redop(operations[0].redop), "sum");
  EXPECT_EQ(operations[1].redop, RedopIndex{});
  EXPECT_EQ(job.extra(operations[1]).native_name, "");
}

TEST(JobLine, TakesSymbolsAsCounts) {
  const Job job = job_with_lines({"all_reduce mp f32[V*h/tp]", "all_reduce mp f32[V * h]", "all_reduce mp f32"});
  const auto& operations = program_of(job, 0).operations;
  EXPECT_EQ(job.count_text(operations[0].count), "V*h/tp");
  EXPECT_EQ(job.count_text(operations[1].count), "V * h");
  EXPECT_TRUE(operations[2].count.is_none());
}

TEST(JobLine, TellsTypesFromPayloads) {
  const Job job = job_with_lines({"send 1 object", "send 1 grad:0.0", "send 1 act", "recv 1 mp f16[8] act:0.2", "send 1 i64[1]"});
  const auto& operations = program_of(job, 0).operations;
  EXPECT_EQ(job.datatype(operations[0].datatype), "object");
  EXPECT_EQ(job.text(operations[0].payload), "");
  EXPECT_EQ(job.text(operations[1].payload), "grad:0.0");
  EXPECT_EQ(job.text(operations[2].payload), "act");
  EXPECT_EQ(comm_name(job, operations[3]), "mp");
  EXPECT_EQ(job.text(operations[3].payload), "act:0.2");
  EXPECT_EQ(operations[4].count, Count::of(1));
  EXPECT_EQ(all_warnings(job), "");
}

TEST(JobLine, FindsTheGroupOfAMessageThatNamesNone) {
  const auto group_of_send = [](const std::string& groups) {
    const Job job = job_with_lines({"send 1"}, groups);
    return comm_name(job, program_of(job, 0).operations.at(0));
  };
  EXPECT_EQ(group_of_send(R"("tp": [0,1])"), "tp");
  EXPECT_EQ(group_of_send(R"("tp": [0,1], "pp": [0,1])"), "pp");
  EXPECT_EQ(group_of_send(R"("tp": [0,1], "p2p": [0,1])"), "p2p");
  EXPECT_EQ(group_of_send(R"("tp": [0,1], "dp": [0,1])"), "WORLD");
  EXPECT_EQ(group_of_send(""), "WORLD");
}

TEST(JobLine, MakesTheWorldOfAllRanks) {
  const Job job = job_with_lines({"barrier", "all_reduce MPI_COMM_WORLD f32[1]", "send 1"}, "");
  ASSERT_EQ(job.communicators().size(), 1U);
  EXPECT_EQ(job.communicators()[0].members, (std::vector<std::int32_t>{0, 1}));
  EXPECT_TRUE(job.communicators()[0].members_known);
  EXPECT_EQ(all_warnings(job), "");
}

TEST(JobLine, GivesABatchOneLaunch) {
  const Job job = job_with_lines({"batch[send 1 f32[V; 2] ; recv 1 act]", "send 1", "batch[isend 2]"});
  const auto& operations = program_of(job, 0).operations;
  ASSERT_EQ(operations.size(), 4U) << all_warnings(job);
  EXPECT_EQ(operations[0].launch, 1U);
  EXPECT_EQ(job.count_text(operations[0].count), "V; 2");
  EXPECT_EQ(operations[1].launch, 1U);
  EXPECT_EQ(operations[2].launch, 0U);
  EXPECT_EQ(operations[3].launch, 2U);
  EXPECT_TRUE(operations[3].nonblocking());
}

TEST(JobLine, GivesWhatStandsBetweenGroupStartAndEndOneLaunch) {
  const Job job = job_with_lines({"group_start", "ncclSend 1", "ncclGroupStart", "batch[recv 1; send 2]", "ncclGroupEnd",
                                  "recv 2", "group_end", "barrier mp"});
  const auto& operations = program_of(job, 0).operations;
  ASSERT_EQ(operations.size(), 5U) << all_warnings(job);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(operations[i].launch, 1U) << i;
  EXPECT_EQ(operations[4].launch, 0U);
}

TEST(JobLine, WarnsOfGroupsThatDoNotClose) {
  const Job job = job_with_lines({"group_end", "group_start", "send 1"});
  EXPECT_TRUE(has_warning(job, "group_end without group_start")) << all_warnings(job);
  EXPECT_TRUE(has_warning(job, "group_start without group_end"));
  ASSERT_EQ(program_of(job, 0).operations.size(), 1U);
  EXPECT_EQ(program_of(job, 0).operations[0].kind, OpKind::kCompute) << "was not issued";
}

TEST(JobLine, MarksWhatIsIssuedWithoutWaiting) {
  const Job job = job_with_lines({"isend 1", "all_reduce mp f32[1] handle=h", "all_reduce mp f32[1] stream=s", "wait handle=h",
                                  "all_reduce mp f32[1] stream=s flags=blocking", "MPI_Iallreduce mp f32[1]"});
  const auto& operations = program_of(job, 0).operations;
  const std::vector<bool> expected{true, true, true, false, false, true};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(operations[i].nonblocking(), expected[i]) << i;
  EXPECT_EQ(job.text(operations[1].handle), "h");
  EXPECT_EQ(job.text(operations[2].stream), "s");
}

TEST(JobLine, ReadsEveryFormOfWait) {
  const Job job = job_with_lines({"wait", "wait 1", "wait 1 mp", "wait h1", "wait handle=h2", "wait stream=s", "MPI_Waitall"});
  const auto& operations = program_of(job, 0).operations;
  ASSERT_EQ(operations.size(), 7U);
  for (const Operation& operation : operations) EXPECT_EQ(operation.kind, OpKind::kWait);
  EXPECT_EQ(operations[0].peer, kNoPeer);
  EXPECT_EQ(operations[1].peer, 1);
  EXPECT_EQ(operations[1].comm, kNoComm);
  EXPECT_EQ(comm_name(job, operations[2]), "mp");
  EXPECT_EQ(job.text(operations[3].handle), "h1");
  EXPECT_EQ(job.text(operations[4].handle), "h2");
  EXPECT_EQ(job.text(operations[5].stream), "s");
  EXPECT_EQ(all_warnings(job), "");
}

TEST(JobLine, ReadsWildcards) {
  const Job job = job_with_lines({"recv any tag=any", "probe * mp", "recv peer=1", "send src=1"});
  const auto& operations = program_of(job, 0).operations;
  EXPECT_EQ(operations[0].peer, kAnyPeer);
  EXPECT_EQ(operations[0].tag, kAnyTag);
  EXPECT_EQ(operations[1].peer, kAnyPeer);
  EXPECT_EQ(operations[1].kind, OpKind::kProbe);
  EXPECT_EQ(operations[2].peer, 1);
  EXPECT_EQ(operations[3].peer, 1);
}

TEST(JobLine, ReadsSrcAsRoot) {
  const Job job = job_with_lines({"broadcast mp f32[1] src=1"});
  EXPECT_EQ(program_of(job, 0).operations.at(0).peer, 1);
}

TEST(JobLine, KeepsComputationAsAMarker) {
  const Job job = job_with_lines({"compute forward layer 3", "compute", "# a remark", ""});
  const auto& operations = program_of(job, 0).operations;
  ASSERT_EQ(operations.size(), 2U);
  EXPECT_EQ(operations[0].kind, OpKind::kCompute);
  EXPECT_EQ(job.extra(operations[0]).label, "forward layer 3");
}

TEST(JobLine, StopsAtExit) {
  const Job job = job_with_lines({"barrier mp", "exit 3", "barrier mp", "bogus"});
  const Program& program = program_of(job, 0);
  ASSERT_EQ(program.operations.size(), 2U);
  EXPECT_EQ(program.operations[1].kind, OpKind::kExit);
  EXPECT_EQ(program.end, (ProgramEnd{EndKind::kExited, 3}));
  EXPECT_FALSE(program.tail_missing);
  EXPECT_TRUE(has_warning(job, "in:4: ranks.0[2]: lines after exit")) << all_warnings(job);
}

TEST(JobLineDamage, UnreadableLineLeavesAHoleAndTheRestIsUsed) {
  const Job job = job_with_lines({"barrier mp", "all_redcue mp f32[1]", "barrier mp"});
  const Program& program = program_of(job, 0);
  ASSERT_EQ(program.operations.size(), 3U);
  EXPECT_EQ(program.operations[1].kind, OpKind::kOpaque);
  EXPECT_EQ(job.extra(program.operations[1]).native_name, "all_redcue");
  EXPECT_TRUE(program.tail_missing);
  EXPECT_FALSE(job.quality().complete);
  EXPECT_TRUE(has_warning(job, "in:3: ranks.0[1]: cannot read 'all_redcue mp f32[1]'")) << all_warnings(job);
  EXPECT_FALSE(program_of(job, 1).tail_missing);
}

TEST(JobLineDamage, UnreadablePartOfABatchLeavesTheOtherParts) {
  const Job job = job_with_lines({"batch[send 1; bogus; batch[recv 1]; recv 1]", "batch[send 1"});
  const auto& operations = program_of(job, 0).operations;
  ASSERT_EQ(operations.size(), 5U);
  EXPECT_EQ(operations[0].kind, OpKind::kSend);
  EXPECT_EQ(operations[1].kind, OpKind::kOpaque);
  EXPECT_EQ(operations[2].kind, OpKind::kOpaque);
  EXPECT_EQ(operations[3].kind, OpKind::kRecv);
  EXPECT_EQ(operations[4].kind, OpKind::kOpaque);
}

struct LineCase {
  std::string line;
  std::string warning;
  bool is_lost;  ///< the operation cannot be used
  friend void PrintTo(const LineCase& c, std::ostream* os) { *os << c.line; }
};

class JobLineWarning : public testing::TestWithParam<LineCase> {};

TEST_P(JobLineWarning, NamesWhatIsWrong) {
  const Job job = job_with_lines({GetParam().line});
  EXPECT_TRUE(has_warning(job, GetParam().warning)) << all_warnings(job);
  ASSERT_EQ(program_of(job, 0).operations.size(), 1U);
  EXPECT_EQ(program_of(job, 0).operations[0].kind == OpKind::kOpaque, GetParam().is_lost);
  EXPECT_EQ(program_of(job, 0).tail_missing, GetParam().is_lost);
}

INSTANTIATE_TEST_SUITE_P(Table, JobLineWarning, testing::ValuesIn<LineCase>({
    {"send", "names no peer", true},
    {"send -1", "names no peer", true},
    {"send 99999999999", "names no peer", true},
    {"all_reduce f32[1]", "names no communicator", true},
    {"unknown mp", "is no operation", true},
    {"send 7", "rank 7 is no member", false},
    {"broadcast mp f32[1] root=7", "rank 7 is no member", false},
    {"broadcast mp f32[1] root=-1", "'-1' is no value for root", false},
    {"broadcast mp f32[1] root=x", "'x' is no value for root", false},
    {"all_reduce mp f32[-5]", "count '-5' is no number", false},
    {"all_reduce mp f32[1.5]", "count '1.5' is no number", false},
    {"all_reduce mp f32[18446744073709551615]", "is no number from 0 to", false},
    {"all_reduce mp f32[1] colour=2", "key 'colour' is not known", false},
    {"all_reduce mp f32[1] tag=-1", "'-1' is no value for tag", false},
    {"all_reduce mp f32[1] at=nan", "'nan' is no value for at", false},
    {"all_reduce mp f32[1] counts=1,,2", "is no value for counts", false},
    {"all_reduce mp f32[1] state=done", "'done' is no value for state", false},
    {"all_reduce mp f32[1] sum", "does not expect 'sum'", false},
    {"all_reduce nope f32[1]", "group 'nope' is not defined", false},
    {"exit 700", "exit status '700'", false},
}));

TEST(JobLineDamage, UnknownRankUsesAGroupItIsNoMemberOf) {
  const auto job = read_text(R"({"groups": {"mp": [0,1]}, "ranks": {"0": ["barrier mp"], "5": ["barrier mp"]}})");
  ASSERT_TRUE(job);
  EXPECT_TRUE(has_warning(*job, "rank 5 is no member")) << all_warnings(*job);
  EXPECT_EQ(program_of(*job, 5).operations.size(), 1U);
}

}  // namespace
}  // namespace lockstep
