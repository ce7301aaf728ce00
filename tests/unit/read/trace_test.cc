// Traces that are whole, wrapped or several, each written in memory.
#include <algorithm>

#include "read/trace_agreement.h"
#include "read/trace_tables.h"
#include "unit/read/read_back.h"

namespace lockstep {
namespace {

/// The same calls on two ranks, up to what `change` does to rank 1.
template <class Change>
ReadBack two_ranks(int calls, std::uint32_t blocks, Change change) {
  std::vector<std::string> files;
  for (int rank = 0; rank < 2; ++rank) {
    TraceSample trace = sample(rank, 2, blocks);
    for (int i = 0; i < calls; ++i) {
      SampleCall call = kSum;
      if (rank == 1) change(i, call);
      trace.add(call);
    }
    trace.finish();
    files.push_back(trace.bytes());
  }
  return read_back(files);
}

TEST(Trace, OfTwoRanksIsAJob) {
  const ReadBack read = two_ranks(3, 4, [](int, SampleCall&) {});
  ASSERT_EQ(read.job.programs().size(), 2U);
  const Program& program = program_of(read.job, 1);
  ASSERT_EQ(program.operations.size(), 4U);
  EXPECT_EQ(program.operations[0].kind, OpKind::kAllReduce);
  EXPECT_EQ(program.operations[0].count, Count::of(4));
  EXPECT_EQ(program.operations[0].state, OpState::kCompleted);
  EXPECT_EQ(program.operations[3].seq, 3U);
  EXPECT_EQ(program.end, (ProgramEnd{EndKind::kExited, 0}));
  EXPECT_EQ(read.job.library(), Library::kMpi);
  EXPECT_EQ(read.job.name(), "sample-1.r0");
  EXPECT_EQ(read.job.quality().ranks_expected, 2U);
  EXPECT_EQ(read.report.verdict, Verdict::kConsistent);
}

TEST(Trace, ShowsADifference) {
  const ReadBack read = two_ranks(3, 4, [](int i, SampleCall& call) { call.redop = i == 1 ? 2 : 1; });
  ASSERT_EQ(read.report.verdict, Verdict::kMismatch);
  EXPECT_EQ(read.report.findings[0].finding_class, "reduction_differs");
  EXPECT_EQ(read.report.findings[0].position->seq, 1U);
}

TEST(Trace, TakesACallThatNeverReturnedAsThePlaceWhereItsRankStands) {
  std::vector<std::string> files;
  for (int rank = 0; rank < 2; ++rank) {
    TraceSample trace = sample(rank, 2);
    trace.add({.kind = OpKind::kRecv, .count = 1, .datatype = 1, .peer = 1 - rank, .returned = false});
    files.push_back(trace.bytes());
  }
  const ReadBack read = read_back(files);
  EXPECT_EQ(program_of(read.job, 0).operations[0].state, OpState::kEntered);
  EXPECT_EQ(program_of(read.job, 0).end.kind, EndKind::kUnknown);
  EXPECT_EQ(read.report.verdict, Verdict::kDeadlock);
}

TEST(Trace, FollowsRequestsToTheirCompletion) {
  TraceSample trace = sample(0, 2);
  trace.add({.kind = OpKind::kIrecv, .count = 1, .datatype = 1, .peer = 1, .request = 1});
  trace.add({.kind = OpKind::kIsend, .count = 1, .datatype = 1, .peer = 1, .request = 2});
  trace.add({.kind = OpKind::kWait, .request = 1});
  const ReadBack read = read_back({trace.bytes()});
  const auto& operations = program_of(read.job, 0).operations;
  ASSERT_EQ(operations.size(), 3U);
  EXPECT_EQ(operations[0].state, OpState::kCompleted);
  EXPECT_EQ(operations[1].state, OpState::kEnqueued);
  EXPECT_EQ(operations[2].handle, operations[0].handle);
  EXPECT_NE(operations[1].handle, operations[0].handle);
}

TEST(Trace, KeepsWildcardsAndNamesWhoWasReceivedFrom) {
  TraceSample trace = sample(0, 2);
  trace.add({.kind = OpKind::kRecv, .peer = trace::kAnySource, .tag = trace::kAnyTagWord, .flags = trace::kCallAnySource, .returned = false});
  trace.add({.kind = OpKind::kRecv, .peer = 1, .tag = 7, .flags = trace::kCallAnySource | trace::kCallAnyTag});
  const ReadBack read = read_back({trace.bytes()});
  const auto& operations = program_of(read.job, 0).operations;
  EXPECT_EQ(operations[0].peer, kAnyPeer);
  EXPECT_EQ(operations[0].tag, kAnyTag);
  EXPECT_EQ(operations[1].peer, 1);
  EXPECT_EQ(operations[1].tag, 7U);
}

/// Every rank of so many sends its own number to each other one, but that `odd` expects one more of rank 0.
ReadBack all_to_all(int ranks, int odd) {
  std::vector<std::string> files;
  for (int rank = 0; rank < ranks; ++rank) {
    TraceSample trace = sample(rank, ranks);
    std::vector<std::uint64_t> sent(static_cast<std::size_t>(ranks), static_cast<std::uint64_t>(rank) + 1);
    std::vector<std::uint64_t> received;
    for (int other = 0; other < ranks; ++other) received.push_back(static_cast<std::uint64_t>(other) + 1);
    if (rank == odd) ++received[0];
    trace.add_all_to_all(sent, received);
    trace.finish();
    files.push_back(trace.bytes());
  }
  return read_back(files);
}

TEST(Trace, HasTheCountsOfEveryMember) {
  for (const int ranks : {3, 6}) {  // in the call, and in a record of their own
    EXPECT_EQ(all_to_all(ranks, -1).report.verdict, Verdict::kConsistent);
    const ReadBack wrong = all_to_all(ranks, 2);
    ASSERT_EQ(wrong.report.findings.size(), 1U) << ranks;
    EXPECT_EQ(wrong.report.verdict, Verdict::kMismatch);
    EXPECT_EQ(wrong.report.findings[0].divergent_ranks, (std::vector<std::int32_t>{0, 2}));
    EXPECT_EQ(wrong.report.findings[0].severity, Severity::kContractViolation);  // it went by
  }
}

TEST(Trace, LeavesCallsWithoutARuleOpaque) {
  std::vector<std::string> files;
  for (int rank = 0; rank < 2; ++rank) {
    TraceSample trace = sample(rank, 2);
    trace.add_opaque("MPI_Win_fence");
    trace.add(kSum);
    trace.finish();
    files.push_back(trace.bytes());
  }
  const ReadBack read = read_back(files);
  const Operation& opaque = program_of(read.job, 0).operations[0];
  EXPECT_EQ(opaque.kind, OpKind::kOpaque);
  EXPECT_EQ(read.job.extra(opaque).native_name, "MPI_Win_fence");
  EXPECT_EQ(read.report.verdict, Verdict::kInsufficient);
}

TEST(Trace, OfACommunicatorHasItsMembersAsJobRanks) {
  std::vector<std::string> files;
  for (int rank = 1; rank < 4; rank += 2) {
    TraceSample trace = sample(rank, 4);
    const std::uint32_t odd = trace.add_comm({3, 1}, 0, "odd");
    trace.add({.kind = OpKind::kBroadcast, .comm = odd, .count = 1, .datatype = 1, .peer = 0});
    files.push_back(trace.bytes());
  }
  const ReadBack read = read_back(files);
  const Operation& broadcast = program_of(read.job, 1).operations[0];
  EXPECT_EQ(read.job.communicator(broadcast.comm).name, "odd");
  EXPECT_EQ(read.job.communicator(broadcast.comm).members, (std::vector<std::int32_t>{3, 1}));
  EXPECT_EQ(broadcast.peer, 3);
  EXPECT_EQ(broadcast.comm, program_of(read.job, 3).operations[0].comm);
}

// ---- rings that wrapped -------------------------------------------------------------------------------------------------

TEST(WrappedTrace, ProvesThatLostCallsAgree) {
  const ReadBack read = two_ranks(5000, 4, [](int, SampleCall&) {});
  const Program& program = program_of(read.job, 0);
  EXPECT_TRUE(program.head_missing);
  EXPECT_GT(program.operations.front().seq, 4000U);
  EXPECT_EQ(program.operations.back().seq, 5000U);
  EXPECT_EQ(read.report.verdict, Verdict::kConsistent) << all_warnings(read.job);
  EXPECT_TRUE(has_warning(read.job, "fingerprints prove that they agree on 1 of 1"));
}

TEST(WrappedTrace, SaysBetweenWhichPositionsALostCallDiffers) {
  const ReadBack read = two_ranks(5000, 4, [](int i, SampleCall& call) { call.redop = i == 700 ? 2 : 1; });
  ASSERT_EQ(read.report.verdict, Verdict::kMismatch);
  const Finding& finding = read.report.findings[0];
  EXPECT_EQ(finding.finding_class, "differs_before_record");
  EXPECT_NE(finding.title.find("between #512 and #1023"), std::string::npos) << finding.title;
}

TEST(WrappedTrace, NamesADifferenceThatItStillHoldsByItsTruePosition) {
  const ReadBack read = two_ranks(5000, 4, [](int i, SampleCall& call) { call.count = i == 4990 ? 5 : 4; });
  ASSERT_EQ(read.report.verdict, Verdict::kMismatch);
  EXPECT_EQ(read.report.findings[0].finding_class, "size_differs");
  EXPECT_EQ(read.report.findings[0].position->seq, 4990U);
}

TEST(WrappedTrace, OfOneRankAccusesNobody) {
  std::vector<std::string> files;
  for (int rank = 0; rank < 2; ++rank) {
    TraceSample trace = sample(rank, 2, rank == 0 ? 4 : 400);
    for (int i = 0; i < 3000; ++i) trace.add(kSum);
    trace.finish();
    files.push_back(trace.bytes());
  }
  EXPECT_EQ(read_back(files).report.verdict, Verdict::kConsistent);
}

TEST(WrappedTrace, MissesNoMessageThatTheOtherRingHasLost) {
  // Rank 1 makes many calls of its own, and loses its receives long before rank 0 loses the sends.
  std::vector<std::string> files;
  for (int rank = 0; rank < 2; ++rank) {
    TraceSample trace = sample(rank, 2);
    const std::uint32_t self = trace.add_comm({rank}, 0, "self");
    for (int i = 0; i < 600; ++i) {
      trace.add({.kind = rank == 0 ? OpKind::kSend : OpKind::kRecv, .count = 1, .datatype = 1, .peer = 1 - rank, .tag = 3});
      for (int j = 0; rank == 1 && j < 10; ++j) trace.add({.kind = OpKind::kBarrier, .comm = self});
    }
    trace.finish();
    files.push_back(trace.bytes());
  }
  const ReadBack read = read_back(files);
  EXPECT_EQ(read.report.verdict, Verdict::kConsistent) << (read.report.findings.empty() ? "" : read.report.findings[0].title);
}

TEST(Agreement, IsProvenUpToTheLastPositionThatAllKnow) {
  const Agreement agreement = compare_states({{0, {{7, 64}, {8, 128}, {9, 200}}}, {1, {{7, 64}, {8, 128}}}});
  EXPECT_EQ(agreement.proven, 128U);
  EXPECT_FALSE(agreement.differs_by);
}

TEST(Agreement, PutsRanksIntoPartiesWhereTheyFirstDiffer) {
  const Agreement agreement = compare_states({{0, {{7, 64}, {8, 128}}}, {1, {{7, 64}, {9, 128}}}, {2, {{7, 64}, {8, 128}}}});
  EXPECT_EQ(agreement.proven, 64U);
  EXPECT_EQ(agreement.differs_by, 128U);
  EXPECT_EQ(agreement.parties, (std::vector<std::vector<std::int32_t>>{{0, 2}, {1}}));
}

// ---- large jobs: fingerprints instead of calls --------------------------------------------------------------------------------

constexpr std::size_t kReplayNothing = 0;

/// Three ranks whose rings have wrapped ten times; `change` to the calls of rank 2, `finish` at its end.
template <class Change, class Finish>
ReadBack large_job(Change change, Finish finish) {
  std::vector<std::string> files;
  for (int rank = 0; rank < 3; ++rank) {
    TraceSample trace = sample(rank, 3);
    for (int i = 0; i < 2600; ++i) {
      SampleCall call = kSum;
      if (rank == 2) change(i, call);
      trace.add(call);
    }
    if (rank == 2) finish(trace);
    else trace.finish();
    files.push_back(trace.bytes());
  }
  return read_back(files, kReplayNothing);
}
constexpr auto kAsTheOthers = [](int, SampleCall&) {};
constexpr auto kFinish = [](TraceSample& trace) { trace.finish(); };

TEST(LargeJob, IsDecidedByFingerprintsAlone) {
  const ReadBack read = large_job(kAsTheOthers, kFinish);
  EXPECT_EQ(read.job.operation_count(), 0U) << "no call was read";
  EXPECT_EQ(read.job.earlier_call_count(), 3U * 2601U);
  EXPECT_TRUE(has_warning(read.job, "agreement is shown by fingerprints of all calls")) << all_warnings(read.job);
  EXPECT_EQ(read.report.verdict, Verdict::kConsistent);
}

TEST(LargeJob, ThatDiffersBeforeWhatIsLeftIsReadAndNamedByItsCheckpoints) {
  const ReadBack read = large_job([](int i, SampleCall& call) { call.redop = i == 1100 ? 2 : 1; }, kFinish);
  EXPECT_GT(read.job.operation_count(), 0U);
  ASSERT_EQ(read.report.verdict, Verdict::kMismatch);
  const Finding& finding = read.report.findings.front();
  EXPECT_EQ(finding.finding_class, "differs_before_record");
  EXPECT_NE(finding.title.find("between #1024 and #"), std::string::npos) << finding.title;
  EXPECT_EQ(finding.divergent_ranks, std::vector<std::int32_t>{2});
}

TEST(LargeJob, IsReadWhereFingerprintsAreNotAll) {
  const auto is_read = [](const ReadBack& read) { return read.job.operation_count() > 0; };
  EXPECT_TRUE(is_read(large_job(kAsTheOthers, [](TraceSample&) {}))) << "one has not ended";
  EXPECT_TRUE(is_read(large_job([](int i, SampleCall& call) { call.count = i == 2599 ? 5 : 4; }, kFinish))) << "the last call";
  EXPECT_TRUE(is_read(large_job(kAsTheOthers, [](TraceSample& trace) {
    trace.add(kSum);
    trace.finish();
  }))) << "one call more";
  EXPECT_TRUE(is_read(large_job(kAsTheOthers, [](TraceSample& trace) {
    trace.add({.kind = OpKind::kIsend, .count = 1, .datatype = 1, .peer = 0, .tag = 1});
    trace.finish();
  }))) << "messages have no fingerprint";
}

// ---- several files ---------------------------------------------------------------------------------------------------------

TEST(TraceSet, ReadsTheYoungestOfSeveralRuns) {
  TraceSample old_run({.rank = 0, .ranks = 1, .run = "a.r0"});
  TraceSample new_run({.rank = 0, .ranks = 1, .run = "a.r1", .start_unix_ns = 1'700'000'001'000'000'000ULL});
  old_run.add(kSum);
  const ReadBack read = read_back({old_run.bytes(), new_run.bytes()});
  EXPECT_EQ(read.report.run.name, "a.r1");
  EXPECT_EQ(read.report.run.others, std::vector<std::string>{"a.r0"});
  EXPECT_TRUE(program_of(read.job, 0).operations.empty());
}

TEST(TraceSet, PrefersTheProcessToItsForkAndTheYoungerToTheOlder) {
  TraceSample fork({.rank = 0, .ranks = 1, .start_unix_ns = 1'700'000'009'000'000'000ULL});
  fork.header().state = trace::kStateForkedFrom;
  TraceSample older({.rank = 0, .ranks = 1});
  TraceSample younger({.rank = 0, .ranks = 1, .start_unix_ns = 1'700'000'002'000'000'000ULL});
  younger.add(kSum);
  const ReadBack read = read_back({fork.bytes(), older.bytes(), younger.bytes()});
  EXPECT_EQ(program_of(read.job, 0).operations.size(), 1U);
  EXPECT_TRUE(has_warning(read.job, "of a forked process"));
  EXPECT_TRUE(has_warning(read.job, "older"));
}

TEST(TraceSet, LeavesOutARankThatOnlyAnEarlierLaunchHas) {
  constexpr std::uint64_t kLater = 1'700'000'060'000'000'000ULL;
  TraceSample old_zero({.rank = 0, .ranks = 2}), old_one({.rank = 1, .ranks = 2});
  TraceSample zero({.rank = 0, .ranks = 2, .start_unix_ns = kLater});
  for (TraceSample* trace : {&old_zero, &old_one, &zero}) trace->add(kSum);
  const ReadBack read = read_back({old_zero.bytes(), old_one.bytes(), zero.bytes()});
  EXPECT_EQ(read.job.programs().size(), 1U);
  EXPECT_TRUE(has_warning(read.job, "of an earlier launch"));
  // Still at work when the other began: the same launch, in which rank 0 was started anew.
  old_one.header().end_ticks = 1'000'000'000'000'000;
  EXPECT_EQ(read_back({old_zero.bytes(), old_one.bytes(), zero.bytes()}).job.programs().size(), 2U);
}

TEST(TraceDirectory, IsItsNewestRunAndFollowsPointers) {
  const TempDir dir;
  for (const char* run : {"/first.r0", "/second.r0", "/elsewhere"}) std::filesystem::create_directory(dir.path() + run);
  dir.write("first.r0/host.1.10.lst", sample(0, 2).bytes());
  dir.write("second.r0/host.1.20.lst", sample(0, 2).bytes());
  const std::string far = dir.write("elsewhere/x.lst", sample(1, 2).bytes());
  dir.write("second.r0/host.2.21.ptr", "lockstep-pointer 1\nhost\n" + far + "\n");
  dir.write("second.r0/host.3.22.ptr", "lockstep-pointer 1\nhost\n/no/such.lst\n");
  const std::vector<std::string> paths{dir.path()};
  const auto job = load_job(paths);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->programs().size(), 2U);
  EXPECT_TRUE(std::ranges::count(job->run().others, "first.r0"));
  EXPECT_TRUE(has_warning(*job, "cannot be seen from here"));
}

// ---- live ------------------------------------------------------------------------------------------------------------------

TEST(LiveLook, TellsAJobThatMovesFromOneThatStands) {
  TraceSample trace = sample(0, 1);
  trace.add(kSum);
  const ReadBack before = read_back({trace.bytes()});
  EXPECT_EQ(Look(before.job).compare(Look(before.job), before.job, 1'700'000'372.0).state, ProgressState::kStalled);
  EXPECT_NEAR(Look(before.job).compare(Look(before.job), before.job, 1'700'000'372.0).stalled_for_s, 372, 1);
  trace.add(kSum);
  const ReadBack after = read_back({trace.bytes()});
  const Observation seen = Look(before.job).compare(Look(after.job), after.job, 1'700'000'372.0);
  EXPECT_EQ(seen.state, ProgressState::kAdvancing);
  EXPECT_EQ(seen.moved, std::vector<std::int32_t>{0});
}

}  // namespace
}  // namespace lockstep
