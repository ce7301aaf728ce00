// Streams, events and graphs order work as CUDA's do.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>

#include "test/world.h"

extern "C" {
int cudaLaunchHostFunc(CUstream_st* stream, void (*function)(void*), void* data);
int cudaStreamCreate(CUstream_st** stream);
int cudaStreamQuery(CUstream_st* stream);
int cudaEventQuery(CUevent_st* event);
int cudaStreamBeginCapture(CUstream_st* stream, int mode);
int cudaStreamEndCapture(CUstream_st* stream, void** graph);
int cudaGraphInstantiate(void** executable, void* graph, unsigned long long flags);
int cudaGraphLaunch(void* executable, CUstream_st* stream);
int cudaPointerGetAttributes(void* attributes, const void* pointer);
}

namespace lockstep::standin::testing {
namespace {

using namespace nccl;
using Ranks = std::vector<int>;

std::atomic<bool> g_gate{false};
void wait_for_gate(void*) {
  while (!g_gate) usleep(100);
}
void store_one(void* to) { *static_cast<int*>(to) = 1; }

TEST(Streams, RunBesideTheHostAndEachOther) {
  const Outcome outcome = run_world(1, {}, [](Rank& rank) {
    const cudaStream_t held = Rank::stream();
    const cudaStream_t free_one = Rank::stream();
    int done = 0;
    cudaLaunchHostFunc(held, wait_for_gate, nullptr);
    cudaLaunchHostFunc(held, store_one, &done);
    rank.expect(cudaStreamQuery(held) == 600, "not ready");
    int other = 0;
    cudaLaunchHostFunc(free_one, store_one, &other);
    cudaStreamSynchronize(free_one);
    rank.expect(other == 1 && done == 0, "the other stream goes on");
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, 0);
    cudaEventRecord(event, held);
    cudaStreamWaitEvent(free_one, event, 0);
    other = 0;
    cudaLaunchHostFunc(free_one, store_one, &other);
    rank.expect(cudaEventQuery(event) == 600 && cudaStreamQuery(free_one) == 600, "an event holds the other stream");
    g_gate = true;
    cudaEventSynchronize(event);
    rank.expect(done == 1, "behind the event all is done");
    cudaStreamSynchronize(free_one);
    rank.expect(other == 1 && cudaStreamQuery(held) == 0, "all done");
  });
  EXPECT_EQ(outcome.failures, "");
  EXPECT_EQ(outcome.ended, Ranks{0});
}

TEST(Streams, TheNullStreamWaitsForBlockingStreamsOnly) {
  const Outcome outcome = run_world(1, {}, [](Rank& rank) {
    cudaStream_t blocking = nullptr;
    cudaStreamCreate(&blocking);
    const cudaStream_t other = Rank::stream();
    cudaLaunchHostFunc(other, wait_for_gate, nullptr);
    int done = 0;
    cudaLaunchHostFunc(nullptr, store_one, &done);
    cudaStreamSynchronize(nullptr);
    rank.expect(done == 1, "a non-blocking stream does not hold it");
    cudaLaunchHostFunc(blocking, wait_for_gate, nullptr);
    cudaLaunchHostFunc(nullptr, store_one, &done);
    rank.expect(cudaStreamQuery(nullptr) == 600, "a blocking one does");
    g_gate = true;
    cudaDeviceSynchronize();
  });
  EXPECT_EQ(outcome.failures, "");
}

TEST(Streams, UncapturedWaitsForAnotherRankAreAStandstillThatIsSeen) {
  const Outcome outcome = run_world(2, {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t stream = Rank::stream();
    const cudaStream_t other = Rank::stream();
    float* data = Rank::device(std::vector<float>{1});
    if (rank.number == 0) ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, comm, stream);
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, 0);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(other, event, 0);
    cudaStreamSynchronize(other);
  });
  EXPECT_TRUE(outcome.stuck);
  EXPECT_EQ(outcome.ended, Ranks{1});
}

TEST(Graphs, RunTheirCallsAtEachLaunch) {
  const auto body = [](int launches_of_rank_1) {
    return [launches_of_rank_1](Rank& rank) {
      const ncclComm_t comm = rank.communicator();
      const cudaStream_t stream = Rank::stream();
      float* data = Rank::device(std::vector<float>{1});
      rank.expect(cudaStreamBeginCapture(stream, 0) == 0, "begin");
      ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, comm, stream);
      void* graph = nullptr;
      void* executable = nullptr;
      rank.expect(cudaStreamEndCapture(stream, &graph) == 0 && graph != nullptr, "end");
      rank.expect(cudaGraphInstantiate(&executable, graph, 0) == 0, "instantiate");
      cudaStreamSynchronize(stream);
      rank.expect(Rank::host(data, 1)[0] == 1.0F, "nothing has run yet");
      const int launches = rank.number == 1 ? launches_of_rank_1 : 3;
      for (int i = 0; i < launches; ++i) cudaGraphLaunch(executable, stream);
      cudaStreamSynchronize(stream);
      rank.expect(Rank::host(data, 1)[0] == (launches == 3 ? 8.0F : 4.0F), "doubled by each launch");
    };
  };
  const Outcome equal = run_world(2, {}, body(3));
  EXPECT_EQ(equal.failures, "");
  EXPECT_EQ(equal.ended, (Ranks{0, 1}));
  const Outcome fewer = run_world(2, {}, body(2));
  EXPECT_TRUE(fewer.stuck);
  EXPECT_EQ(fewer.ended, Ranks{1});
}

TEST(Graphs, AGroupIsCapturedWhollyOrNot) {
  const Outcome outcome = run_world(1, {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t captured = Rank::stream();
    const cudaStream_t plain = Rank::stream();
    float* data = Rank::device(std::vector<float>{1});
    cudaStreamBeginCapture(captured, 0);
    ncclGroupStart();
    ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, comm, captured);
    ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, comm, plain);
    rank.expect(ncclGroupEnd() == ncclInvalidUsage, "refused");
  });
  EXPECT_EQ(outcome.failures, "");
}

TEST(Memory, SaysWhoseItIs) {
  const Outcome outcome = run_world(1, {}, [](Rank& rank) {
    struct {
      int type, device;
      void *device_pointer, *host_pointer;
      long reserved[8];
    } attributes{};
    char* memory = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&memory), 100);
    rank.expect(cudaPointerGetAttributes(&attributes, memory + 99) == 0 && attributes.type == 2 && attributes.device == 0, "device");
    rank.expect(cudaPointerGetAttributes(&attributes, &attributes) == 0 && attributes.type == 0, "not ours");
  });
  EXPECT_EQ(outcome.failures, "");
}

}  // namespace
}  // namespace lockstep::standin::testing
