#include "read/job_json_writer.h"

#include <fmt/format.h>

#include <functional>
#include <tuple>

#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

/// All that a Job says about one operation, without indices that may be numbered otherwise.
std::string describe(const Job& job, const Operation& operation) {
  const OperationExtra& extra = job.extra(operation);
  std::string text = fmt::format("{} {} seq={} peer={} tag={} {}[{}] {} {} {} {} state={} flags={}", op_name(operation.kind),
                                 operation.comm == kNoComm ? "-" : job.communicator(operation.comm).id, operation.seq,
                                 operation.peer, operation.tag, job.datatype(operation.datatype), job.count_text(operation.count),
                                 job.redop(operation.redop), job.text(operation.stream), job.text(operation.handle),
                                 job.text(operation.payload), static_cast<int>(operation.state), operation.flags);
  text += fmt::format(" {} {} {} {} {} {} {} {} {} {}", fmt::join(extra.counts, ","), fmt::join(extra.recv_counts, ","), fmt::join(extra.members, ","), extra.color,
                      extra.key, extra.label, extra.native_name, extra.native_seq.value_or(-1), extra.at.value_or(-1), extra.thread);
  for (const Frame& frame : job.site(operation.site).frames) text += fmt::format(" {}|{}|{}", frame.file, frame.function, frame.line);
  return text;
}

void expect_equal(const Job& left, const Job& right) {
  EXPECT_EQ(left.library(), right.library());
  EXPECT_EQ(left.library_version(), right.library_version());
  EXPECT_EQ(left.implicit_launch_order(), right.implicit_launch_order());
  EXPECT_EQ(left.name(), right.name());
  EXPECT_EQ(left.quality().complete, right.quality().complete);
  EXPECT_EQ(left.quality().ranks_expected, right.quality().ranks_expected);
  ASSERT_EQ(left.communicators().size(), right.communicators().size());
  for (std::size_t i = 0; i < left.communicators().size(); ++i) {
    EXPECT_EQ(left.communicators()[i].id, right.communicators()[i].id);
    EXPECT_EQ(left.communicators()[i].members, right.communicators()[i].members);
    EXPECT_EQ(left.communicators()[i].members_known, right.communicators()[i].members_known);
    EXPECT_EQ(left.communicators()[i].library, right.communicators()[i].library);
  }
  ASSERT_EQ(left.programs().size(), right.programs().size());
  for (std::size_t p = 0; p < left.programs().size(); ++p) {
    const Program& a = left.programs()[p];
    const Program& b = right.programs()[p];
    EXPECT_EQ(a.rank, b.rank);
    EXPECT_EQ(a.end, b.end);
    EXPECT_EQ(std::tie(a.head_missing, a.tail_missing), std::tie(b.head_missing, b.tail_missing));
    EXPECT_EQ(std::tie(a.place.host, a.place.pid, a.place.local_rank, a.place.device),
              std::tie(b.place.host, b.place.pid, b.place.local_rank, b.place.device));
    ASSERT_EQ(a.operations.size(), b.operations.size()) << a.rank;
    for (std::size_t i = 0; i < a.operations.size(); ++i) {
      EXPECT_EQ(describe(left, a.operations[i]), describe(right, b.operations[i]));
      const bool joined = i > 0 && a.operations[i].launch != 0 && a.operations[i].launch == a.operations[i - 1].launch;
      EXPECT_EQ(joined, i > 0 && b.operations[i].launch != 0 && b.operations[i].launch == b.operations[i - 1].launch);
      EXPECT_EQ(a.operations[i].launch != 0, b.operations[i].launch != 0);
    }
  }
}

/// Writes, reads back and compares.
void expect_round_trip(const Job& job) {
  const std::string text = to_job_json(job);
  const auto again = read_text(text);
  ASSERT_TRUE(again) << again.error().message << "\n" << text;
  EXPECT_EQ(all_warnings(*again), "") << text;
  expect_equal(job, *again);
  EXPECT_EQ(to_job_json(*again), text);
}

TEST(JobJsonWriter, KeepsHostWaitsGraphsAndTheRulesOfTheLibrary) {
  const auto job = read_text(R"({"library": "nccl", "library_version": "2.28.9", "launch_order": "implicit",
    "groups": {"dp": [0,1]},
    "ranks": {"0": ["all_reduce dp f32[1] stream=c flags=captured handle=g", "batch[all_gather dp f32[2] flags=captured handle=g]",
                    "graph_launch handle=g stream=s", "event_record handle=e stream=s", "stream_wait handle=e stream=t",
                    "graph_launch handle=g stream=s", "event_sync handle=e", "stream_sync stream=s", "device_sync",
                    "all_reduce dp f32[1] result=4"]}})");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->library_version(), 22809);
  EXPECT_TRUE(job->implicit_launch_order());
  expect_round_trip(*job);
}

TEST(JobJsonWriter, KeepsWhoseTheGroupsAre) {
  const auto job = read_text(R"({"library": "nccl", "libraries": {"world": "mpi", "dp": "nccl"}, "groups": {"dp": [0,1], "world": [0,1]},
    "ranks": {"0": ["barrier world", "all_reduce dp f32[1]"]}})");
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->mixes_libraries());
  EXPECT_EQ(job->library_of(CommIndex{0}), Library::kNccl);
  EXPECT_EQ(job->library_of(CommIndex{1}), Library::kMpi);
  expect_round_trip(*job);
  const auto host = read_text(R"({"library": "gloo", "groups": {"dp": [0]}, "ranks": {"0": ["barrier dp"]}})");
  ASSERT_TRUE(host);
  expect_round_trip(*host);
  const auto strange = read_text(R"({"libraries": {"world": "hccl", "none": "mpi"}, "groups": {"world": [0]}, "ranks": {"0": []}})");
  ASSERT_TRUE(strange);
  EXPECT_FALSE(strange->mixes_libraries());
  EXPECT_EQ(strange->quality().warnings.size(), 2U);
}

TEST(JobJsonWriter, KnowsBothWaysInWhichNcclCodesItsVersion) {
  for (const auto& [text, code] : {std::pair("\"2.7.8\"", 2708), std::pair("22809", 22809), std::pair("\"2.26\"", 22600)}) {
    const auto job = read_text(fmt::format(R"({{"library_version": {}, "groups": {{}}, "ranks": {{"0": []}}}})", text));
    ASSERT_TRUE(job);
    EXPECT_EQ(job->library_version(), code) << text;
    EXPECT_EQ(all_warnings(*job), "");
  }
}

TEST(JobJsonWriter, WritesTheFormOfTheContract) {
  const auto job = read_text(R"({"groups": {"mp": [0,1]}, "ranks": {"0": ["batch[send 1 act;recv 1 f32[4] tag=2]", "ncclAllReduce mp f32[V*h]"],
    "1": []}, "ends": {"1": "killed 9"}, "library": "nccl"})");
  ASSERT_TRUE(job);
  EXPECT_EQ(to_job_json(*job), R"({"schema": "lockstep-job/1",
 "library": "nccl",
 "groups": {
  "mp": [0,1]},
 "ranks": {
  "0": [
    "batch[send 1 mp payload=act; recv 1 mp f32[4] tag=2]",
    "all_reduce mp f32[V*h] native=ncclAllReduce"],
  "1": []},
 "ends": {
  "0": "exited 0",
  "1": "killed 9"}
}
)");
}

TEST(JobJsonWriter, ReadsBackWhatJobJsonCanSay) {
  const auto job = read_text(R"({"groups": {"mp": [0,1], "a b": [0], "pp": [0,1], "x=[;]?": [0], "unused": null},
   "ranks": {"0": ["all_reduce mp f32[1] redop=max site=step@a.py:1|main.py:2 label=train_batch[0] state=completed at=0.125",
     "barrier a%20b", "barrier x%3D%5B%3B%5D%3F", "group_start", "send 1", "compute inside of 50%", "recv any tag=any", "group_end",
     "batch[isend 1 act; irecv 1 grad handle=h]", "wait", "wait 1", "wait 1 mp", "wait h", "wait h count=s*b dtype=f16", "wait 1 mp count=5", "wait stream=s", "nonsense", "all_reduce ghost",
     "all_to_all_v mp i8 counts=1,2", "split mp color=1 key=2 thread=main", "all_gather mp [7]", "all_gather mp odd_type[7]",
     "all_gather mp odd_type[]", "all_reduce mp f32[1] stream=s flags=blocking,captured", "all_reduce mp f32[1] flags=nonblocking,persistent,held",
     "probe any mp", "send ? mp payload=f32", "barrier ?", "compute", "MPI_Ibcast mp f32[1] root=1 native_seq=-4", "exit 2"], "3": ["barrier mp"]},
   "ends": {"0": "running", "1": "killed 11"}, "places": {"0": {"host": "n1", "pid": 12, "local_rank": 0, "device": "cuda:0"}},
   "missing": {"3": "head,tail"}, "name": "run \"7\"\n", "ranks_expected": 4})");
  ASSERT_TRUE(job) << job.error().message;
  const auto& operations = program_of(*job, 0).operations;
  ASSERT_EQ(operations.size(), 30U) << all_warnings(*job);
  EXPECT_EQ(job->end_of_rank(1).kind, EndKind::kKilled);
  const std::string text = to_job_json(*job);
  const auto again = read_text(text);
  ASSERT_TRUE(again);
  // Written for what it is, so read with the same remarks: rank 3 and the lost line.
  expect_equal(*job, *again);
  EXPECT_EQ(again->end_of_rank(1).kind, EndKind::kKilled);
  EXPECT_EQ(to_job_json(*again), text);
}

TEST(JobJsonWriter, KeepsGroupsOfOneNameApart) {
  JobBuilder builder;
  const std::vector<std::int32_t> left{0};
  const std::vector<std::int32_t> right{1};
  const CommIndex a = builder.communicator("id a", "G", left);
  const CommIndex b = builder.communicator("id b", "G", right);
  const CommIndex c = builder.communicator("", "", left);
  builder.program(0).operations = {{.comm = a, .kind = OpKind::kBarrier}, {.comm = c, .kind = OpKind::kBarrier}};
  builder.program(1).operations = {{.comm = b, .kind = OpKind::kBarrier}};
  builder.set_ranks_expected(2);
  expect_round_trip(std::move(builder).build());
}

TEST(JobJsonWriter, ReadsBackOddTexts) {
  JobBuilder builder;
  const std::vector<std::int32_t> members{0};
  const CommIndex comm = builder.communicator("1", "1", members);
  for (const std::string text : {"a b", "[", "]", "[]", "x;y", "50%", "%41", "k=v", "f32", "?", "\xc3\xa9", "\t", "\"\\", "a|b@c:1"}) {
    Operation operation{.count = Count::symbol(builder.intern(text)), .comm = comm, .peer = 0, .kind = OpKind::kSend};
    operation.payload = operation.handle = operation.stream = builder.intern(text);
    operation.site = builder.site({.frames = {{text, text, 1}, {text, "", 0}, {"", text, 0}}});
    operation.datatype = builder.datatype(text);
    operation.redop = builder.redop(text);
    operation.extra = builder.extra({.color = text, .label = text, .native_name = text, .thread = text});
    operation.launch = 1;
    operation.flags = kOpNonblocking;
    builder.program(0).operations.push_back(operation);
  }
  builder.program(0).operations.push_back({.count = Count::symbol(builder.intern("12")), .comm = comm, .kind = OpKind::kAllReduce});
  builder.program(0).end = {EndKind::kExited, 0};
  builder.set_ranks_expected(1);
  expect_round_trip(std::move(builder).build());
}

TEST(JobJsonWriter, WritesBigJobsInPieces) {
  JobBuilder builder;
  const std::vector<std::int32_t> members{0};
  const CommIndex comm = builder.communicator("g", "g", members);
  builder.program(0).operations.assign(50000, {.count = Count::of(1), .comm = comm, .kind = OpKind::kAllReduce});
  builder.program(0).end = {EndKind::kExited, 0};
  const Job job = std::move(builder).build();
  std::size_t pieces = 0;
  std::string text;
  write_job_json(job, [&](std::string_view piece) {
    ++pieces;
    EXPECT_LT(piece.size(), std::size_t{128} << 10);
    text += piece;
  });
  EXPECT_GT(pieces, 10U);
  EXPECT_EQ(text, to_job_json(job));
}

}  // namespace
}  // namespace lockstep
