// What survives: SIGKILL at any instant, a ring that wrapped, and the proof of agreement that outlives the
// records.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "compare_traces.h"
#include "run_host.h"

namespace lockstep::shim_test {
namespace {

using namespace lockstep::trace;

const Checkpoint& newest(const CommEntry& entry) {
  return entry.now[entry.now[0].calls > entry.now[1].calls ? 0 : 1];
}

std::vector<const ReadCall*> on_world(const ReadTrace& trace) {
  std::vector<const ReadCall*> calls;
  for (const ReadCall& call : trace.calls) {
    if (call.record.comm == 1 && is_collective(call.kind())) calls.push_back(&call);
  }
  return calls;
}

// Recomputed from FORMAT.md's words: shape, count, hashes of the named records.
std::uint64_t next_fingerprint(const ReadTrace& trace, std::uint64_t before, const CallRecord& r) {
  const std::uint64_t type = r.datatype != 0 ? trace.datatypes.at(r.datatype).second : 0;
  const std::uint64_t redop = r.redop != 0 ? trace.redops.at(r.redop).second : 0;
  return advance(before, signature(r.kind, r.count, type, redop), std::uint64_t{r.seq} + 1);
}

TEST(Ring, TwoHundredKillsLoseAndTearNothing) {
  std::mt19937 random(20261201);
  std::uniform_int_distribution<int> milliseconds(1, 25);
  std::size_t records = 0;
  for (int round = 0; round < 200; ++round) {
    const TemporaryDirectory directory;
    int out[2];
    ASSERT_EQ(pipe(out), 0);
    const pid_t child = fork();
    if (child == 0) {
      dup2(out[1], STDOUT_FILENO);
      setenv("LD_PRELOAD", LOCKSTEP_SHIM_LIBRARY, 1);
      setenv("LOCKSTEP_DIR", directory.path().c_str(), 1);
      setenv("LOCKSTEP_RING", "256K", 1);
      execl(SHIM_HOST, SHIM_HOST, "endless", static_cast<char*>(nullptr));
      _exit(127);
    }
    close(out[1]);
    char buffer[16];
    ASSERT_GT(read(out[0], buffer, sizeof buffer), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds(random)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(out[0]);

    const std::vector<ReadTrace> traces = read_traces(directory.path());
    ASSERT_EQ(traces.size(), 1U);
    const ReadTrace& trace = traces[0];
    ASSERT_EQ(trace.problems, std::vector<std::string>{});
    ASSERT_EQ(trace.header.end, ProcessEnd::kUnknown);
    ASSERT_EQ(trace.header.records_dropped, 0U);
    const auto calls = on_world(trace);
    records += trace.calls.size();
    // A call whose block died with it may be missing at the end; nothing before.
    const std::uint64_t entered = newest(trace.entries.at(1)).calls;
    if (calls.empty()) continue;
    ASSERT_LE(entered - calls.back()->record.seq, 2U);
    std::optional<std::uint64_t> before;
    std::uint32_t expected = calls.front()->record.seq;
    for (const ReadCall* call : calls) {
      ASSERT_EQ(call->record.seq, expected++);
      if (before) {
        ASSERT_EQ(call->record.detail, next_fingerprint(trace, *before, call->record));
      }
      before = call->record.detail;
    }
    for (std::size_t i = 0; i + 1 < trace.calls.size(); ++i) {
      ASSERT_TRUE(trace.calls[i].returned()) << "only the last call may be open";
      ASSERT_LE(trace.calls[i].record.enter_ticks, trace.calls[i + 1].record.enter_ticks);
    }
  }
  std::printf("%zu records\n", records);
}

ReadTrace run_count(const std::string& directory, int rank, int calls, int differ_at) {
  HostOptions options;
  options.env = recorded_into(directory + "/" + std::to_string(rank));
  options.env.insert(options.env.end(),
                     {{"LOCKSTEP_RING", "64K"}, {"STUB_SIZE", "2"}, {"STUB_RANK", std::to_string(rank)}});
  run_host({SHIM_HOST, "count", std::to_string(calls), std::to_string(differ_at)}, options);
  std::vector<ReadTrace> traces = read_traces(directory + "/" + std::to_string(rank));
  return traces.empty() ? ReadTrace{} : traces[0];
}

TEST(Ring, AgreementIsProvenAfterTenTurns) {
  const TemporaryDirectory directory;
  const ReadTrace one = run_count(directory.path(), 0, 100'000, -1);
  const ReadTrace two = run_count(directory.path(), 1, 90'000, -1);
  ASSERT_GT(one.last_block, 20U);
  ASSERT_LT(one.calls.size(), 1100U);
  EXPECT_EQ(one.comms.at(1).record.identity, two.comms.at(1).record.identity);
  const CommEntry& a = one.entries.at(1);
  const CommEntry& b = two.entries.at(1);
  EXPECT_EQ(newest(a).calls, 100'000U);
  EXPECT_EQ(newest(b).calls, 90'000U);
  // 10,000 calls apart: level 8 (16,384 calls) is the first that must have a checkpoint in common.
  int common = 0;
  for (std::uint32_t level = 0; level < kLevels; ++level) {
    for (const Checkpoint& mine : a.latest[level]) {
      for (const Checkpoint& other : b.latest[level]) {
        if (mine.calls == 0 || mine.calls != other.calls) continue;
        EXPECT_EQ(mine.fingerprint, other.fingerprint);
        EXPECT_EQ(mine.calls % (64U << level), 0U);
        ++common;
      }
    }
  }
  EXPECT_GE(common, 1);
}

TEST(Ring, TheFirstDifferenceIsEnclosedAfterTenTurns) {
  const TemporaryDirectory directory;
  const ReadTrace one = run_count(directory.path(), 0, 100'000, -1);
  const ReadTrace two = run_count(directory.path(), 1, 100'000, 37'000);
  const CommEntry& a = one.entries.at(1);
  const CommEntry& b = two.entries.at(1);
  EXPECT_NE(newest(a).fingerprint, newest(b).fingerprint);
  std::uint32_t level = 0;
  while (a.first[level] != 0 && a.first[level] == b.first[level]) ++level;
  EXPECT_EQ(64U << level, 65'536U);  // equal after 32,768 calls, different after 65,536
  EXPECT_NE(a.first[level], 0U);
  EXPECT_EQ(a.first[level + 1], 0U);
}

TEST(Ring, RecordsSaySomethingWhereTheyAreAllKept) {
  const TemporaryDirectory directory;
  const ReadTrace trace = run_count(directory.path(), 1, 300, 200);
  const auto calls = on_world(trace);
  ASSERT_EQ(calls.size(), 300U);
  std::uint64_t fingerprint = 0;
  for (const ReadCall* call : calls) {
    fingerprint = next_fingerprint(trace, fingerprint, call->record);
    EXPECT_EQ(call->record.detail, fingerprint);
    const bool other = call->record.seq == 200;
    EXPECT_EQ(trace.redops.at(call->record.redop).first, other ? "MPI_MAX" : "MPI_SUM");
  }
  EXPECT_EQ(newest(trace.entries.at(1)).fingerprint, fingerprint);
  EXPECT_EQ(trace.first_block, 1U);
  EXPECT_FALSE(trace.gap_in_blocks);
}

TEST(Ring, ACommunicatorThatTwoThreadsUsedAtOnceIsMarked) {
  for (const auto& [mode, marked] :
       {std::pair<const char*, bool>{"concurrent", true}, {"alternating", false}}) {
    const TemporaryDirectory directory;
    HostOptions options;
    options.env = recorded_into(directory.path());
    EXPECT_EQ(run_host({SHIM_HOST, mode}, options).status, 0);
    const std::vector<ReadTrace> traces = read_traces(directory.path());
    ASSERT_EQ(traces.size(), 1U);
    EXPECT_EQ(traces[0].problems, std::vector<std::string>{});
    EXPECT_EQ((traces[0].entries.at(1).flags & kCommConcurrent) != 0, marked);
    EXPECT_EQ((traces[0].header.state & kStateConcurrent) != 0, marked);
  }
}

TEST(Ring, MoreThreadsThanBlocksDropsAndCounts) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = recorded_into(directory.path());
  options.env.emplace_back("LOCKSTEP_RING", "64K");
  const HostRun run = run_host({SHIM_HOST, "threads"}, options);
  EXPECT_EQ(run.out, "total 32000\n");
  const std::vector<ReadTrace> traces = read_traces(directory.path());
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].problems, std::vector<std::string>{});
  EXPECT_GT(traces[0].header.records_dropped, 0U);
}

TEST(Ring, AnchorsGiveTheSameRate) {
  const TemporaryDirectory directory;
  const ReadTrace trace = run_count(directory.path(), 0, 100'000, -1);
  const FileHeader& h = trace.header;
  ASSERT_GT(h.created_ticks, h.start_ticks);
  const double rate = static_cast<double>(h.created_ticks - h.start_ticks) /
                      static_cast<double>(h.created_unix_ns - h.start_unix_ns);
  const double spent =
      static_cast<double>(trace.calls.back().record.return_ticks - h.start_ticks) / rate / 1e9;
  EXPECT_GT(spent, 0.0);
  EXPECT_LT(spent, 10.0);
}

}  // namespace
}  // namespace lockstep::shim_test
