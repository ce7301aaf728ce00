// Traces that are whole, wrapped, damaged, foreign or of a later version, each written in memory.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "diagnose/diagnose.h"
#include "read/load.h"
#include "read/trace_agreement.h"
#include "read/trace_set.h"
#include "read/trace_tables.h"
#include "support/trace_sample.h"
#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

using testing::SampleCall;
using testing::TraceSample;

constexpr SampleCall kSum{.kind = OpKind::kAllReduce, .count = 4, .datatype = 1, .redop = 1};

TraceSample sample(int rank, int ranks, std::uint32_t blocks = 4) {
  return TraceSample({.rank = rank, .ranks = ranks, .blocks = blocks});
}

/// The Job of these files, and the first error of one that could not be used.
struct ReadBack {
  Job job;
  std::string error;
  Report report;
};
ReadBack read_back(const std::vector<std::string>& files, std::size_t most_records_to_replay = kMostRecordsToReplay) {
  JobIntake intake;
  std::vector<std::string> padded;
  std::vector<EvidenceFile> views;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < files.size(); ++i) {
    padded.push_back(files[i] + std::string(MappedFile::kPaddingBytes, '\0'));
    names.push_back("rank" + std::to_string(i) + ".lst");
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    views.push_back({.path = names[i], .contents = {padded[i].data(), files[i].size()}});
  }
  ReadBack result;
  for (const auto& error : read_traces(views, intake, most_records_to_replay)) {
    if (error && result.error.empty()) result.error = error->message;
  }
  result.job = std::move(intake).finish();
  result.report = diagnose(result.job);
  return result;
}

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

// ---- damage ---------------------------------------------------------------------------------------------------------------

std::string whole() {
  TraceSample trace = sample(0, 1);
  for (int i = 0; i < 100; ++i) trace.add(kSum);
  trace.finish();
  return trace.bytes();
}

template <class Change>
std::string with_header(Change change) {
  std::string bytes = whole();
  trace::FileHeader header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  change(header);
  std::memcpy(bytes.data(), static_cast<const void*>(&header), sizeof header);
  return bytes;
}

TEST(DamagedTrace, BadMagic) {
  EXPECT_FALSE(looks_like_trace("\x89LSX\r\n\x1a\n and so on"));
  EXPECT_FALSE(looks_like_trace(std::string(4096, '\0')));
  EXPECT_TRUE(looks_like_trace(whole()));
}

TEST(DamagedTrace, FutureVersionIsNamed) {
  const ReadBack read = read_back({with_header([](auto& header) { header.version = 9, header.min_reader = 7; })});
  EXPECT_NE(read.error.find("format version 9 and needs a reader of version 7"), std::string::npos) << read.error;
}

TEST(DamagedTrace, LaterVersionThatOldReadersUnderstandIsRead) {
  const ReadBack read = read_back({with_header([](auto& header) { header.version = 9; })});
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(program_of(read.job, 0).operations.size(), 101U);
}

TEST(DamagedTrace, SectionsBeyondTheFile) {
  for (const std::string& bytes : {with_header([](auto& header) { header.ring_offset = ~0ULL; }),
                                   with_header([](auto& header) { header.side_bytes = 1ULL << 60; }),
                                   with_header([](auto& header) { header.comm_entry_count = 0xffff'ffff; }),
                                   with_header([](auto& header) { header.block_count = 0xffff'ffff; }),
                                   with_header([](auto& header) { header.block_bytes = 1; }),
                                   with_header([](auto& header) { header.record_bytes = 32; })}) {
    EXPECT_NE(read_back({bytes}).error, "");
  }
}

TEST(DamagedTrace, TruncatedTailKeepsWholeBlocks) {
  const std::string bytes = whole();
  const ReadBack read = read_back({bytes.substr(0, bytes.size() - 3 * 4096)});
  const Program& program = program_of(read.job, 0);
  EXPECT_EQ(program.operations.size(), 63U);
  EXPECT_TRUE(program.tail_missing);
  EXPECT_TRUE(has_warning(read.job, "is cut"));
  EXPECT_NE(read.report.verdict, Verdict::kConsistent);
}

TEST(DamagedTrace, TruncatedAnywhereIsNeverAccused) {
  const std::string bytes = whole();
  for (std::size_t size = 0; size < bytes.size(); size += 997) {
    const ReadBack read = read_back({bytes.substr(0, size)});
    EXPECT_TRUE(read.report.verdict == Verdict::kInsufficient) << size;
  }
}

TEST(DamagedTrace, UncommittedRecordEndsTheBlock) {
  std::string bytes = whole();
  trace::FileHeader header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  const std::size_t tenth = header.ring_offset + 10 * trace::kRecordBytes;
  bytes[tenth + 60] = 0;
  // The block before the last is broken off: what follows in the next one is out of step, and history starts there.
  const ReadBack read = read_back({bytes});
  EXPECT_TRUE(program_of(read.job, 0).head_missing);
  EXPECT_TRUE(has_warning(read.job, "are missing"));
}

TEST(DamagedTrace, EveryFlippedByteIsSurvived) {
  TraceSample trace = sample(0, 2);
  for (int i = 0; i < 20; ++i) trace.add(kSum);
  trace.add_opaque("MPI_Start");
  const std::string good = trace.bytes();
  const std::size_t ring = good.size() - 4 * 4096;
  for (std::size_t at = 0; at < good.size(); at += at < 256 || at >= ring ? 1 : 7) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0xff);
    if (at >= ring + 4096) break;
    read_back({bytes});
  }
}

// ---- several files ---------------------------------------------------------------------------------------------------------

/// Rank 1's file is cut by another thread at a random instant of the reading. Whatever that hits, what comes of it is a Job that
/// says so or one of the whole file, and accuses nobody.
TEST(DamagedTrace, ShortenedWhileItIsRead) {
  const TempDir dir;
  std::vector<std::string> paths;
  std::vector<std::string> files;
  for (int rank = 0; rank < 2; ++rank) {
    TraceSample trace({.rank = rank, .ranks = 2, .blocks = 200, .block_bytes = 32768});
    for (int i = 0; i < 100'000; ++i) trace.add(kSum);
    trace.finish();
    files.push_back(trace.bytes());
    paths.push_back(dir.write("rank" + std::to_string(rank) + ".lst", files.back()));
  }
  std::minstd_rand random(7);
  for (int round = 0; round < 20; ++round) {
    dir.write("rank1.lst", files[1]);
    const auto wait = std::chrono::microseconds(random() % 8'000);
    const std::size_t half = files[1].size() / 2;  // it stays a trace
    const auto size = static_cast<off_t>(half + random() % half);
    std::jthread other([&] {
      std::this_thread::sleep_for(wait);
      EXPECT_EQ(::truncate(paths[1].c_str(), size), 0);
    });
    const bool first = round % 4 == 0;
    if (first) other.join();
    const Result<Job> job = load_job(std::vector<std::string>{dir.path()});
    ASSERT_TRUE(job) << job.error().message;
    const Report report = diagnose(*job);
    EXPECT_TRUE(report.verdict == Verdict::kConsistent || report.verdict == Verdict::kInsufficient) << report.summary;
    EXPECT_TRUE(!job->quality().complete || job->operation_count() == 200'002U);
    EXPECT_FALSE(first && job->quality().complete);
  }
}

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
