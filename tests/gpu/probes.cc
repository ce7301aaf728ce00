// One GPU, the real NCCL: several communicators and streams, grouped messages to itself, and what one GPU can tell of the questions that
// only a run decides. Prints a line for each; ends with 1 where a call fails that must not.
//
// NCCL refuses two ranks of one communicator on one GPU ("Duplicate GPU detected"), so every communicator here has one rank. What takes a
// second rank to go wrong (who hangs, who gets whose bytes) is not decided here, and said so.
#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void must(bool holds, const char* what, const char* why) {
  if (holds) return;
  std::printf("failed: %s: %s\n", what, why);
  std::exit(1);
}
#define NCCL(call)                                                            \
  do {                                                                        \
    const ncclResult_t result_ = (call);                                      \
    must(result_ == ncclSuccess, #call, ncclGetErrorString(result_));         \
  } while (false)
#define CUDA(call)                                                            \
  do {                                                                        \
    const cudaError_t result_ = (call);                                       \
    must(result_ == cudaSuccess, #call, cudaGetErrorString(result_));         \
  } while (false)

constexpr int kComms = 3;
constexpr size_t kElements = 1 << 16;

struct World {
  ncclComm_t comms[kComms]{};
  cudaStream_t streams[kComms]{};
  float* from = nullptr;
  float* to = nullptr;
};

World make_world() {
  World world;
  CUDA(cudaSetDevice(0));
  for (int i = 0; i < kComms; ++i) {
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRank(&world.comms[i], 1, id, 0));
    CUDA(cudaStreamCreateWithFlags(&world.streams[i], cudaStreamNonBlocking));
  }
  CUDA(cudaMalloc(reinterpret_cast<void**>(&world.from), kElements * sizeof(float)));
  CUDA(cudaMalloc(reinterpret_cast<void**>(&world.to), kElements * sizeof(float)));
  std::vector<float> values(kElements);
  for (size_t i = 0; i < kElements; ++i) values[i] = static_cast<float>(i);
  CUDA(cudaMemcpy(world.from, values.data(), kElements * sizeof(float), cudaMemcpyHostToDevice));
  return world;
}

void synchronize(const World& world) {
  for (cudaStream_t stream : world.streams) CUDA(cudaStreamSynchronize(stream));
}

void said(const char* probe, ncclResult_t result) { std::printf("probe %s: %s\n", probe, ncclGetErrorString(result)); }

void several_communicators_and_streams(const World& world) {
  for (int turn = 0; turn < 3; ++turn)
    for (int i = 0; i < kComms; ++i)
      NCCL(ncclAllReduce(world.from, world.to, kElements, ncclFloat, ncclSum, world.comms[i], world.streams[i]));
  cudaEvent_t event;
  CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CUDA(cudaEventRecord(event, world.streams[0]));
  CUDA(cudaStreamWaitEvent(world.streams[1], event, 0));
  NCCL(ncclBroadcast(world.from, world.to, 8, ncclFloat, 0, world.comms[1], world.streams[1]));
  synchronize(world);
  CUDA(cudaEventDestroy(event));
  std::printf("several communicators and streams: done\n");
}

void grouped_messages_to_itself(const World& world) {
  CUDA(cudaMemset(world.to, 0, kElements * sizeof(float)));
  NCCL(ncclGroupStart());
  NCCL(ncclSend(world.from, kElements, ncclFloat, 0, world.comms[0], world.streams[0]));
  NCCL(ncclRecv(world.to, kElements, ncclFloat, 0, world.comms[0], world.streams[0]));
  NCCL(ncclGroupEnd());
  float last = 0;
  CUDA(cudaStreamSynchronize(world.streams[0]));
  CUDA(cudaMemcpy(&last, world.to + kElements - 1, sizeof last, cudaMemcpyDeviceToHost));
  must(last == static_cast<float>(kElements - 1), "message to itself", "other data");
  std::printf("grouped messages to itself: done\n");
}

void captured(const World& world) {
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  CUDA(cudaStreamBeginCapture(world.streams[0], cudaStreamCaptureModeThreadLocal));
  NCCL(ncclAllReduce(world.from, world.to, 64, ncclFloat, ncclSum, world.comms[0], world.streams[0]));
  CUDA(cudaStreamEndCapture(world.streams[0], &graph));
  CUDA(cudaGraphInstantiateWithFlags(&instance, graph, 0));
  for (int turn = 0; turn < 3; ++turn) CUDA(cudaGraphLaunch(instance, world.streams[0]));
  synchronize(world);
  CUDA(cudaGraphExecDestroy(instance));
  CUDA(cudaGraphDestroy(graph));
  std::printf("captured and launched three times: done\n");
}

// What NCCL says at the call, which needs no partner.
void probes(const World& world) {
  ncclComm_t comm = world.comms[0];
  cudaStream_t stream = world.streams[0];
  said("empty collective", ncclAllReduce(world.from, world.to, 0, ncclFloat, ncclSum, comm, stream));
  NCCL(ncclGroupStart());
  const ncclResult_t send = ncclSend(world.from, 0, ncclFloat, 0, comm, stream);
  const ncclResult_t receive = ncclRecv(world.to, 0, ncclFloat, 0, comm, stream);
  const ncclResult_t end = ncclGroupEnd();
  said("empty message to itself", send != ncclSuccess ? send : receive != ncclSuccess ? receive : end);

  said("message to itself without a group", ncclSend(world.from, 8, ncclFloat, 0, comm, stream));
  NCCL(ncclGroupStart());
  const ncclResult_t alone = ncclSend(world.from, 8, ncclFloat, 0, comm, stream);
  const ncclResult_t alone_end = ncclGroupEnd();
  said("message to itself without its receive", alone != ncclSuccess ? alone : alone_end);

  NCCL(ncclGroupStart());
  NCCL(ncclAllReduce(world.from, world.to, 1000, ncclFloat, ncclSum, comm, stream));
  NCCL(ncclAllReduce(world.from, world.to, 1000, ncclFloat, ncclMax, comm, stream));
  said("two reductions of one size in a group", ncclGroupEnd());
  NCCL(ncclGroupStart());
  for (int i = kComms; i-- > 0;) NCCL(ncclAllReduce(world.from, world.to, 16, ncclFloat, ncclSum, world.comms[i], world.streams[i]));
  said("communicators in a group, backwards", ncclGroupEnd());

  NCCL(ncclGroupStart());
  const ncclResult_t refused = ncclAllReduce(world.from, world.to, 8, ncclFloat, ncclSum, nullptr, stream);
  said("call without a communicator in a group", refused);
  said("end of that group", ncclGroupEnd());

  NCCL(ncclGroupStart());
  CUDA(cudaStreamBeginCapture(world.streams[0], cudaStreamCaptureModeThreadLocal));
  const ncclResult_t first = ncclAllReduce(world.from, world.to, 8, ncclFloat, ncclSum, world.comms[0], world.streams[0]);
  const ncclResult_t second = ncclAllReduce(world.from, world.to, 8, ncclFloat, ncclSum, world.comms[1], world.streams[1]);
  const ncclResult_t mixed = ncclGroupEnd();
  said("captured and not in one group", first != ncclSuccess ? first : second != ncclSuccess ? second : mixed);
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(world.streams[0], &graph));
  static_cast<void>(cudaGetLastError());
  synchronize(world);

  for (const char* open : {"in-group swap of calls of one size", "groups that begin elsewhere on another rank", "zero elements on one rank only",
                           "other type, same bytes", "DEBUG_GLOBAL at a mismatch"})
    std::printf("not decided, needs two GPUs: %s\n", open);
}

}  // namespace

int main() {
  int version = 0;
  NCCL(ncclGetVersion(&version));
  std::printf("NCCL %d\n", version);
  const World world = make_world();
  several_communicators_and_streams(world);
  grouped_messages_to_itself(world);
  captured(world);
  probes(world);
  for (ncclComm_t comm : world.comms) NCCL(ncclCommDestroy(comm));
  std::printf("all done\n");
  return 0;
}
