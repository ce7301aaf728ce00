#include "read/jsonl_calls.h"

#include <fmt/format.h>

#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

/// A record; `rest` are further fields.
std::string record(int rank, int seq, std::string_view op, std::string_view rest = "", bool completed = true) {
  return fmt::format(R"({{"rank": {}, "seq": {}, "op": "{}", {}"completed": {}}})", rank, seq, op,
                     rest.empty() ? "" : std::string(rest) + ", ", completed) +
         "\n";
}
std::string new_group(int rank, int seq, std::string_view label, std::string_view ranks) {
  return record(rank, seq, "new_group", fmt::format(R"("group": "{}", "ranks": {})", label, ranks));
}
std::string on(std::string_view label, std::string_view ranks, std::string_view rest = R"("numel": 1, "dtype": "float32")") {
  return fmt::format(R"("group": "{}", "ranks": {}, {})", label, ranks, rest);
}

const std::string kWorldCall = on("WORLD", "[0, 1]");

TEST(JsonlCalls, ReadsARecord) {
  const auto job = read_text(
      R"({"rank": 0, "seq": 1, "phase": "train_batch[0]", "op": "all_reduce", "numel": 6, "shape": [2, 3], "dtype": "float32", "ranks": [0, 1], "group": "WORLD", "reduce_op": "SUM", "site": "a.py:f:1", "stack": ["a.py:f:1", "run.py:<module>:48"], "completed": false})"
      "\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(all_warnings(*job), "");
  EXPECT_EQ(job->library(), Library::kTorch);
  EXPECT_EQ(job->quality().ranks_expected, 2U);
  const Operation& operation = program_of(*job, 0).operations.at(0);
  EXPECT_EQ(operation.kind, OpKind::kAllReduce);
  EXPECT_EQ(operation.count, Count::of(6));
  EXPECT_EQ(job->datatype(operation.datatype), "f32");
  EXPECT_EQ(job->redop(operation.redop), "sum");
  EXPECT_EQ(operation.state, OpState::kEntered);
  EXPECT_EQ(operation.line, 1U);
  EXPECT_EQ(job->communicator(operation.comm).name, "WORLD");
  EXPECT_EQ(job->communicator(operation.comm).members, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(job->site(operation.site).frames, (std::vector<Frame>{{"a.py", "f", 1}, {"run.py", "<module>", 48}}));
  EXPECT_EQ(job->extra(operation).label, "train_batch[0]");
  EXPECT_EQ(program_of(*job, 0).end.kind, EndKind::kUnknown);
}

TEST(JsonlCalls, EndsAProgramWhoseCallsAllReturned) {
  const auto job = read_text(record(0, 1, "all_reduce", kWorldCall) + record(1, 1, "all_reduce", kWorldCall, false));
  ASSERT_TRUE(job);
  EXPECT_EQ(program_of(*job, 0).end, (ProgramEnd{EndKind::kExited, ProgramEnd::kStatusUnknown}));
  EXPECT_EQ(program_of(*job, 0).operations.at(0).state, OpState::kCompleted);
  EXPECT_EQ(program_of(*job, 1).end.kind, EndKind::kUnknown);
}

TEST(JsonlCalls, KnowsACommunicatorByItsCreationNotByItsLabel) {
  // Rank 1 is not told of G1 and so labels the same group differently.
  const auto job = read_texts({{"r0", new_group(0, 1, "G1", "[0]") + new_group(0, 2, "G2", "[0, 1]") + new_group(0, 3, "G3", "[1, 0]") +
                                          record(0, 4, "all_reduce", on("G3", "[0, 1]"))},
                               {"r1", new_group(1, 1, "A", "[0, 1]") + new_group(1, 2, "B", "[0, 1]") +
                                          record(1, 3, "all_reduce", on("B", "[0, 1]"))}});
  ASSERT_TRUE(job);
  const Operation& left = program_of(*job, 0).operations.at(3);
  const Operation& right = program_of(*job, 1).operations.at(2);
  EXPECT_EQ(left.comm, right.comm);
  EXPECT_EQ(job->communicator(left.comm).name, "G3");
  EXPECT_EQ(job->communicator(left.comm).id, "[0-1]#2");
  const Operation& creation = program_of(*job, 0).operations.at(2);
  EXPECT_EQ(creation.kind, OpKind::kNewGroup);
  EXPECT_EQ(job->communicator(creation.comm).name, "WORLD");
  EXPECT_EQ(job->extra(creation).members, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(creation.seq, 2U);
  EXPECT_EQ(job->communicator(creation.comm).members, (std::vector<std::int32_t>{0, 1}));
}

TEST(JsonlCalls, KnowsALabelWithoutCreationByLabelAndMembers) {
  const auto job = read_texts({{"r0", record(0, 1, "all_reduce", on("tp", "[0, 1]"))}, {"r1", record(1, 1, "all_reduce", on("tp", "[0, 1]"))},
                               {"r2", record(2, 1, "all_reduce", on("tp", "[2, 3]"))}});
  ASSERT_TRUE(job);
  EXPECT_EQ(program_of(*job, 0).operations.at(0).comm, program_of(*job, 1).operations.at(0).comm);
  EXPECT_NE(program_of(*job, 0).operations.at(0).comm, program_of(*job, 2).operations.at(0).comm);
}

TEST(JsonlCalls, ReadsRootAndPeerAsJobRanks) {
  const auto job = read_text(record(2, 1, "broadcast", on("G", "[2, 3]", R"("root": 3)")) + record(2, 2, "send", on("G", "[2, 3]", R"("peer": 3)")) +
                             record(2, 3, "recv", on("G", "[2, 3]", R"("peer": null)")));
  ASSERT_TRUE(job);
  EXPECT_EQ(program_of(*job, 2).operations.at(0).peer, 3);
  EXPECT_EQ(program_of(*job, 2).operations.at(1).peer, 3);
  EXPECT_EQ(program_of(*job, 2).operations.at(2).peer, kAnyPeer);
}

TEST(JsonlCalls, TakesAnAsynchronousCallThatReturnedAsEnqueued) {
  const auto job = read_text(record(0, 1, "all_reduce", on("WORLD", "[0]", R"("async": true)")) + record(0, 2, "isend", on("WORLD", "[0]", R"("peer": 0)")));
  ASSERT_TRUE(job);
  for (const Operation& operation : program_of(*job, 0).operations) {
    EXPECT_TRUE(operation.nonblocking());
    EXPECT_EQ(operation.state, OpState::kEnqueued);
  }
  EXPECT_EQ(program_of(*job, 0).end.kind, EndKind::kExited);
}

TEST(JsonlCalls, SeparatesRanksOfOneFile) {
  const auto job = read_text(record(1, 1, "barrier", kWorldCall) + record(0, 1, "barrier", kWorldCall) + record(1, 2, "barrier", kWorldCall));
  ASSERT_TRUE(job);
  EXPECT_EQ(program_of(*job, 0).operations.size(), 1U);
  EXPECT_EQ(program_of(*job, 1).operations.size(), 2U);
  EXPECT_EQ(program_of(*job, 1).operations[1].line, 3U);
}

TEST(JsonlCalls, KeepsTheFrameworksNameOfACall) {
  const auto job = read_text(record(0, 1, "all_gather_into_tensor", kWorldCall) + record(0, 2, "frobnicate", kWorldCall));
  ASSERT_TRUE(job);
  const auto& operations = program_of(*job, 0).operations;
  EXPECT_EQ(operations.at(0).kind, OpKind::kAllGather);
  EXPECT_EQ(job->extra(operations.at(0)).native_name, "all_gather_into_tensor");
  EXPECT_EQ(operations.at(1).kind, OpKind::kOpaque);
  EXPECT_TRUE(has_warning(*job, "in:2: op 'frobnicate' is not known"));
}

TEST(JsonlCalls, ReadsWindowsLineEnds) {
  std::string text = record(0, 1, "barrier", kWorldCall) + record(0, 2, "barrier", kWorldCall);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.insert(at, "\r");
  const auto job = read_text(text);
  ASSERT_TRUE(job);
  EXPECT_EQ(all_warnings(*job), "");
  EXPECT_EQ(job->operation_count(), 2U);
}

TEST(JsonlCallsDamage, TruncatedTail) {
  const std::string whole = record(0, 1, "barrier", kWorldCall) + record(0, 2, "all_reduce", kWorldCall);
  const std::size_t first = record(0, 1, "barrier", kWorldCall).size();
  for (std::size_t size = first + 1; size < whole.size() - 1; ++size) {
    const auto job = read_text(whole.substr(0, size));
    ASSERT_TRUE(job);
    EXPECT_EQ(program_of(*job, 0).operations.size(), 1U) << size;
    EXPECT_TRUE(program_of(*job, 0).tail_missing) << size;
    EXPECT_EQ(program_of(*job, 0).end.kind, EndKind::kUnknown);
    EXPECT_TRUE(has_warning(*job, "in:2: the last line, cut short")) << all_warnings(*job);
  }
  const auto unterminated = read_text(whole.substr(0, whole.size() - 1));
  ASSERT_TRUE(unterminated);
  EXPECT_EQ(program_of(*unterminated, 0).operations.size(), 2U);
  EXPECT_FALSE(program_of(*unterminated, 0).tail_missing);
}

TEST(JsonlCallsDamage, UnreadableLineInTheMiddle) {
  const std::string text = record(0, 1, "barrier", kWorldCall) + "{\"rank\": 0, \"seq\": 2, \"op\n" + record(0, 3, "barrier", kWorldCall);
  const auto job = read_text(text);
  ASSERT_TRUE(job);
  const Program& program = program_of(*job, 0);
  ASSERT_EQ(program.operations.size(), 3U);
  EXPECT_EQ(program.operations[1].kind, OpKind::kOpaque);
  EXPECT_TRUE(program.tail_missing);
  EXPECT_FALSE(job->quality().complete);
  EXPECT_TRUE(has_warning(*job, "in:2: is cut: no call record")) << all_warnings(*job);
  EXPECT_TRUE(has_warning(*job, "in:3: rank 0: call 3 follows call 1"));
}

TEST(JsonlCallsDamage, ForeignTextBetweenRecordsCostsNothing) {
  const auto job = read_text(record(0, 1, "barrier", kWorldCall) + "Timeout (0:00:20)!\n\n" + record(0, 2, "barrier", kWorldCall));
  ASSERT_TRUE(job);
  EXPECT_EQ(program_of(*job, 0).operations.size(), 2U);
  EXPECT_FALSE(program_of(*job, 0).tail_missing) << "the numbers of the calls show that none is missing";
  EXPECT_TRUE(has_warning(*job, "in:2:"));
}

TEST(JsonlCallsDamage, NulBytes) {
  const auto job = read_text(record(0, 1, "barrier", kWorldCall) + std::string(4096, '\0'));
  ASSERT_TRUE(job);
  EXPECT_TRUE(program_of(*job, 0).tail_missing);
  EXPECT_FALSE(job->quality().complete);
}

TEST(JsonlCallsDamage, MissingHead) {
  const auto job = read_text(record(0, 7, "barrier", kWorldCall));
  ASSERT_TRUE(job);
  EXPECT_TRUE(program_of(*job, 0).head_missing);
  EXPECT_TRUE(has_warning(*job, "rank 0 begins with call 7")) << all_warnings(*job);
}

TEST(JsonlCallsDamage, RepeatedRecords) {
  const std::string text = record(0, 1, "barrier", kWorldCall) + record(0, 2, "barrier", kWorldCall);
  const auto job = read_text(text + text);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->operation_count(), 2U);
  EXPECT_TRUE(has_warning(*job, "in:3: rank 0 has call 1 again")) << all_warnings(*job);
}

TEST(JsonlCallsDamage, ContradictoryGroups) {
  const auto job = read_text(new_group(0, 1, "G1", "[0, 1]") + record(0, 2, "barrier", on("G1", "[0, 2]")) + record(0, 3, "barrier", on("G1", "[0, 1]")));
  ASSERT_TRUE(job);
  EXPECT_TRUE(has_warning(*job, "in:2: 'G1' has members [0,2] here and [0-1] before")) << all_warnings(*job);
  EXPECT_NE(program_of(*job, 0).operations.at(1).comm, program_of(*job, 0).operations.at(2).comm);
}

TEST(JsonlCallsDamage, ContradictoryWorlds) {
  const auto job = read_texts({{"a", record(0, 1, "barrier", on("WORLD", "[0, 1]"))}, {"b", record(1, 1, "barrier", on("WORLD", "[0, 1, 2]"))}});
  ASSERT_TRUE(job);
  EXPECT_TRUE(has_warning(*job, "b:1: 'WORLD' has members [0-2] here and [0-1] before")) << all_warnings(*job);
}

TEST(JsonlCallsDamage, UnknownRank) {
  const auto job = read_text(record(0, 1, "broadcast", on("WORLD", "[0, 1]", R"("root": 9)")) + record(0, 2, "send", on("WORLD", "[0, 1]", R"("peer": -4)")) +
                             R"({"rank": "0", "op": "barrier"})" "\n" R"({"rank": -3, "op": "barrier"})" "\n" R"({"rank": 99999999999, "op": "barrier"})" "\n");
  ASSERT_TRUE(job);
  EXPECT_TRUE(has_warning(*job, "rank 9 is no member of 'WORLD'")) << all_warnings(*job);
  EXPECT_EQ(program_of(*job, 0).operations.at(0).peer, 9);
  EXPECT_EQ(job->programs().size(), 1U);
  EXPECT_TRUE(has_warning(*job, "in:4: has no rank from 0"));
}

TEST(JsonlCallsDamage, DeepNesting) {
  const std::string deep = fmt::format(R"({{"rank": 0, "seq": 2, "op": "barrier", "stack": {}}})", std::string(500000, '['));
  const auto job = read_text(record(0, 1, "barrier", kWorldCall) + deep + "\n" + record(0, 3, "barrier", kWorldCall));
  ASSERT_TRUE(job);
  EXPECT_EQ(program_of(*job, 0).operations.size(), 3U);
}

TEST(JsonlCallsDamage, MillionMemberGroup) {
  std::string members = "[0";
  for (int i = 1; i < 1000000; ++i) members += fmt::format(",{}", i);
  const auto job = read_text(record(0, 1, "barrier", on("WORLD", members + "]")) + record(0, 2, "barrier", on("WORLD", members + "]")));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->communicators()[0].members.size(), 1000000U);
  EXPECT_EQ(program_of(*job, 0).operations.size(), 2U);
}

TEST(JsonlCallsDamage, FieldsOfAnotherType) {
  for (const char* field : {R"("numel": "x")", R"("ranks": 7)", R"("stack": {"a": 1})", R"("dtype": 3)", R"("completed": 1)"}) {
    const auto job = read_text(record(0, 1, "barrier", kWorldCall) + fmt::format(R"({{"rank": 0, "seq": 2, "op": "barrier", {}}})", field) + "\n" +
                               record(0, 3, "barrier", kWorldCall));
    ASSERT_TRUE(job);
    EXPECT_TRUE(has_warning(*job, "in:2: has a field of the wrong type")) << field << "\n" << all_warnings(*job);
    EXPECT_EQ(program_of(*job, 0).operations.size(), 3U) << field;
  }
}

TEST(JsonlCallsDamage, NegativeCount) {
  const auto job = read_text(record(0, 1, "all_reduce", on("WORLD", "[0]", R"("numel": -1)")));
  ASSERT_TRUE(job);
  EXPECT_TRUE(has_warning(*job, "numel -1 is less than 0"));
  EXPECT_TRUE(program_of(*job, 0).operations.at(0).count.is_none());
}

TEST(JsonlCallsDamage, DuplicateRankFile) {
  const std::string text = new_group(0, 1, "G1", "[0]") + record(0, 2, "barrier", kWorldCall);
  const auto job = read_texts({{"a", text}, {"b", text}});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->operation_count(), 2U);
  EXPECT_TRUE(job->quality().complete);
  EXPECT_TRUE(has_warning(*job, "a and b hold the same 2 calls of rank 0")) << all_warnings(*job);
}

TEST(JsonlCallsDamage, LaterSnapshotOfOneRank) {
  const std::string early = record(0, 1, "barrier", kWorldCall) + record(0, 2, "barrier", kWorldCall, false);
  const std::string late = record(0, 1, "barrier", kWorldCall) + record(0, 2, "barrier", kWorldCall) + record(0, 3, "barrier", kWorldCall);
  const auto job = read_texts({{"a", late}, {"b", early}});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->operation_count(), 3U);
  EXPECT_FALSE(program_of(*job, 0).tail_missing);
  EXPECT_FALSE(job->quality().complete);
}

}  // namespace
}  // namespace lockstep
