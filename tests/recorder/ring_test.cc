// Threads that record at once: what the ring keeps of each, and that tables they share give one id for one thing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "recorded_process.h"
#include "vector_registry.h"

namespace lockstep::recorder_test {
namespace {

constexpr int kThreads = 4;  // the ring has eight blocks

/// All stay until all have done: the block of a thread that ended is taken over by the word of the kernel, which no sanitizer hears.
template <class Work>
void in_threads(Work work) {
  std::latch done(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&work, &done, t] {
      work(t);
      done.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class Recorded : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!start()) GTEST_SKIP() << "no recorder: LOCKSTEP=0, or no directory";
  }
};

TEST_F(Recorded, KeepsTheLastCallsOfEachThreadWhereTheRingHasWrapped) {
  constexpr std::uint64_t kCalls = 3000;
  const char places[kThreads] = {};
  std::vector<shim::Comm*> comms;
  for (int t = 0; t < kThreads; ++t) comms.push_back(make_comm(0x1000 + static_cast<std::uint64_t>(t)));
  ASSERT_EQ(std::ranges::count(comms, nullptr), 0);
  in_threads([&](int t) {
    for (std::uint64_t call = 0; call < kCalls; ++call) call_once(comms[static_cast<std::size_t>(t)], &places[t], call);
  });
  const shim_test::ReadTrace trace = read_back();
  EXPECT_TRUE(trace.problems.empty()) << trace.problems.front();
  EXPECT_EQ(trace.header.records_dropped, 0U);
  std::map<std::uint32_t, std::uint64_t> next;  // by communicator
  for (const shim_test::ReadCall& call : trace.calls) {
    if (call.record.comm == 0 || call.record.count != call.record.seq) continue;
    const auto [at, first] = next.try_emplace(call.record.comm, call.record.seq);
    EXPECT_EQ(call.record.seq, at->second) << "of communicator " << call.record.comm << (first ? ", the first" : "");
    EXPECT_TRUE(call.returned());
    at->second = std::uint64_t{call.record.seq} + 1;
  }
  for (const shim::Comm* comm : comms) EXPECT_TRUE(!next.contains(comm->id) || next[comm->id] == kCalls) << comm->id;
  EXPECT_FALSE(next.empty());
  for (const shim::Comm* comm : comms) {
    const trace::CommEntry& entry = trace.entries.at(comm->id);
    const trace::Checkpoint& newest = entry.now[entry.now[0].calls > entry.now[1].calls ? 0 : 1];
    EXPECT_EQ(newest.calls, kCalls);
    EXPECT_EQ(newest.fingerprint, comms[0]->fingerprint) << "equal calls, equal fingerprint";
  }
}

TEST_F(Recorded, GivesOnePlaceOneIdInAllThreads) {
  static const char places[64] = {};
  std::vector<std::vector<std::uint32_t>> ids(kThreads, std::vector<std::uint32_t>(64));
  in_threads([&](int t) {
    for (std::size_t i = 0; i < 64; ++i) ids[static_cast<std::size_t>(t)][i] = shim::site_id(&places[i]);
  });
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(ids[static_cast<std::size_t>(t)], ids[0]);
  EXPECT_EQ(std::set<std::uint32_t>(ids[0].begin(), ids[0].end()).size(), 64U);
  EXPECT_FALSE(std::ranges::count(ids[0], 0U));
}

TEST_F(Recorded, FindsNoVectorUnderTheHashOfAnother) {
  constexpr std::uint64_t kSlots = 1024;  // equal modulo this share a place, and the first to come has it
  std::atomic<int> wrong{0};
  in_threads([&](int t) {
    for (std::uint64_t round = 1; round <= 200; ++round) {
      const std::uint64_t hash = round + kSlots * (static_cast<std::uint64_t>(t) + 1);
      std::uint32_t id = 0;
      if (std::uint64_t* values = shim::begin_vector(hash, 1, id)) {
        *values = hash;
        shim::end_vector(values);
        if (shim::find_vector(hash) != id) ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0);
  const shim_test::ReadTrace trace = read_back();
  for (std::uint64_t round = 1; round <= 200; ++round) {
    int found = 0;
    for (std::uint64_t t = 1; t <= kThreads; ++t) {
      const std::uint64_t hash = round + kSlots * t;
      const std::uint32_t id = shim::find_vector(hash);
      if (id == 0) continue;
      ++found;
      EXPECT_EQ(trace.vectors.at(id).at(0), hash);
    }
    EXPECT_LE(found, 1);
  }
}

TEST_F(Recorded, NamesAreInternedOnceWhileOthersLookThemUp) {
  std::atomic<int> wrong{0};
  in_threads([&](int t) {
    for (std::uint64_t handle = 1; handle <= 200; ++handle) {
      if (handle % kThreads == static_cast<std::uint64_t>(t)) {
        const std::uint16_t id = shim::intern_datatype(handle * 977, 4, "f32");
        shim::g_datatypes.put(handle, {.hash = handle * 977, .units = 1, .unit_bytes = 4, .id = id});
      }
      const shim::Meaning* meaning = shim::g_datatypes.find(handle);
      if (meaning != nullptr && meaning->hash != handle * 977) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  for (std::uint64_t handle = 1; handle <= 200; ++handle) {
    const shim::Meaning* meaning = shim::g_datatypes.find(handle);
    ASSERT_NE(meaning, nullptr);
    EXPECT_EQ(meaning->id, shim::intern_datatype(handle * 977, 4, "f32"));
  }
  shim::g_datatypes.remove(7);
  EXPECT_EQ(shim::g_datatypes.find(7), nullptr);
  EXPECT_NE(shim::g_datatypes.find(8), nullptr);
}

TEST_F(Recorded, HandleThatComesAgainIsAnotherCommunicator) {
  shim::Comm* first = make_comm(0x2000);
  ASSERT_NE(first, nullptr);
  const std::uint32_t id = first->id;
  call_once(first, &id, 1);
  shim::remove_comm(0x2000);
  EXPECT_EQ(shim::find_comm(0x2000), nullptr);
  const shim::Comm* second = make_comm(0x2000);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second->id, id);
  EXPECT_EQ(second->calls, 0U);
}

}  // namespace
}  // namespace lockstep::recorder_test
