// Programs of nccl_host about what is rarely called: communicators that change their size or state, signals, threads, and graphs that run
// often.
#include <sys/stat.h>

#include <thread>

#include "nccl_scenario.h"

namespace {

/// Between ranks, where NCCL has nothing for it.
void raise_flag(const std::string& name) {
  FILE* file = std::fopen((g_directory + "/" + name).c_str(), "wb");
  must(file != nullptr, "flag");
  std::fclose(file);
}
void await_flag(const std::string& name) {
  struct stat found {};
  for (int tries = 0; tries < 20000; ++tries) {
    if (stat((g_directory + "/" + name).c_str(), &found) == 0) return;
    usleep(500);
  }
  must(false, "no flag");
}

void reduce_on(ncclComm_t comm, cudaStream_t stream, size_t count) {
  void* buffer = nullptr;
  CUDA(cudaMalloc(&buffer, 1 << 16));
  NCCL(ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
}

void scalable() {
  ncclUniqueId ids[2] = {shared_id("first"), shared_id("second")};
  ncclComm_t comm = nullptr;
  NCCL(ncclCommInitRankScalable(&comm, g_ranks, g_rank, 2, ids, nullptr));
  reduce_on(comm, nullptr, 60);
  NCCL(ncclCommDestroy(comm));
}

// The last rank is left out and calls nothing.
void shrink() {
  Rank rank;
  rank.all_reduce(61);
  CUDA(cudaStreamSynchronize(rank.stream));
  int excluded[1] = {g_ranks - 1};
  for (int turn = 0; turn < 2 && g_rank != excluded[0]; ++turn) {
    ncclComm_t rest = nullptr;
    NCCL(ncclCommShrink(rank.comm, excluded, 1, &rest, nullptr, 0));
    reduce_on(rest, rank.stream, 62);
    NCCL(ncclCommDestroy(rest));
  }
  rank.end();
}

// All but the last are there before it comes.
void grow() {
  const ncclUniqueId old_id = shared_id("old");
  const ncclUniqueId new_id = shared_id("new");
  const bool comes = g_rank == g_ranks - 1;
  ncclComm_t old = nullptr;
  if (!comes) {
    NCCL(ncclCommInitRank(&old, g_ranks - 1, old_id, g_rank));
    reduce_on(old, nullptr, 63);
  }
  ncclComm_t grown = nullptr;
  NCCL(ncclCommGrow(old, g_ranks, g_rank == 0 || comes ? &new_id : nullptr, comes ? g_rank : -1, &grown, nullptr));
  reduce_on(grown, nullptr, 64);
  if (old != nullptr) NCCL(ncclCommDestroy(old));
  NCCL(ncclCommDestroy(grown));
}

/// Everyone puts its number into a window of the next rank, and signals it once more; rank 1 waits for `too_many` signals above that.
void signals(int too_many) {
  Rank rank;
  constexpr size_t kBytes = 1 << 16;
  constexpr size_t kOffset = 256;
  ncclWindow_t window = nullptr;
  NCCL(ncclCommWindowRegister(rank.comm, rank.to, kBytes, &window, 0));
  const int next = (g_rank + 1) % g_ranks;
  const int last = (g_rank + g_ranks - 1) % g_ranks;
  auto* numbers = static_cast<float*>(rank.from);
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 8; ++i) numbers[i] = static_cast<float>(100 * turn + g_rank);
    NCCL(ncclPutSignal(rank.from, 8, ncclFloat32, next, window, kOffset, 0, 0, 0, rank.comm, rank.stream));
    NCCL(ncclSignal(next, 0, 0, 0, rank.comm, rank.stream));
    ncclWaitSignalDesc_t descriptor{2, last, 0, 0};
    if (turn == 2 && g_rank == 1) descriptor.opCnt += too_many;
    NCCL(ncclWaitSignal(1, &descriptor, rank.comm, rank.stream));
    CUDA(cudaStreamSynchronize(rank.stream));
    must(static_cast<float*>(rank.to)[kOffset / sizeof(float) + 7] == static_cast<float>(100 * turn + last), "what was put");
  }
  // Refused: no such window, no such signal.
  must(ncclPutSignal(rank.from, 8, ncclFloat32, next, nullptr, 0, 0, 0, 0, rank.comm, rank.stream) == ncclInvalidArgument, "window");
  must(ncclSignal(next, 1, 0, 0, rank.comm, rank.stream) == ncclInvalidArgument, "signal 1");
  NCCL(ncclCommWindowDeregister(rank.comm, window));
  if (too_many == 0) rank.all_reduce(65);
  rank.end();
}

/// The same waits as the scenario `waits` of the runtime, and a graph. With `crossed`, rank 1 waits on the host for a reduction that rank 0 issues
/// behind its own wait.
void driver_waits(bool crossed) {
  Rank rank;
  ncclComm_t second = nullptr;
  NCCL(ncclCommInitRank(&second, g_ranks, shared_id("second"), g_rank));
  CUDA(cuInit(0));
  cudaStream_t other = nullptr;
  cudaEvent_t done = nullptr;
  CUDA(cudaStreamCreate(&other));
  CUDA(cuEventCreate(&done, 0));
  CUDA(cuStreamSynchronize(other));  // nothing to wait for: not recorded
  rank.all_reduce();
  CUDA(cuEventRecord(done, rank.stream));
  CUDA(cuStreamWaitEvent(other, done, 0));
  CUDA(cuStreamSynchronize(other));
  rank.all_reduce();
  CUDA(cuEventRecord(done, rank.stream));
  CUDA(cuEventSynchronize(done));
  rank.all_reduce();
  CUDA(cuCtxSynchronize());
  void* captured = nullptr;
  void* exec = nullptr;
  CUDA(cuStreamBeginCapture_v2(rank.stream, 1));
  rank.all_reduce(20);
  CUDA(cuStreamEndCapture(rank.stream, &captured));
  CUDA(cuGraphInstantiateWithFlags(&exec, captured, 0));
  for (int i = 0; i < 2; ++i) CUDA(cuGraphLaunch(exec, rank.stream));
  const auto reduce_second = [&] { NCCL(ncclAllReduce(rank.from, rank.to, 21, ncclFloat32, ncclSum, second, other)); };
  if (crossed && g_rank == 1) {
    reduce_second();
    CUDA(cuStreamSynchronize(other));
    rank.all_reduce(22);
  } else {
    rank.all_reduce(22);
    CUDA(cuStreamSynchronize(rank.stream));
    reduce_second();
  }
  CUDA(cuCtxSynchronize());
  NCCL(ncclCommDestroy(second));
  rank.end();
}

void suspended(bool half) {
  Rank rank;
  rank.all_reduce(66);
  if (!half || g_rank == 0) NCCL(ncclCommSuspend(rank.comm, 0));
  if (!half) NCCL(ncclCommResume(rank.comm));
  rank.all_reduce(67);
  rank.end();
}

// A call on a communicator that is revoked is refused.
void revoked() {
  Rank rank;
  rank.all_reduce(68);
  CUDA(cudaStreamSynchronize(rank.stream));
  NCCL(ncclCommRevoke(rank.comm, 0));
  must(ncclAllReduce(rank.from, rank.to, 69, ncclFloat32, ncclSum, rank.comm, rank.stream) != ncclSuccess, "revoked");
  NCCL(ncclCommAbort(rank.comm));
}

// Rank 0 has one thread in a split, which waits for rank 1, while another reduces on the same communicator. Rank 1 makes its calls one
// after the other.
void threads() {
  Rank rank;
  ncclComm_t part = nullptr;
  const auto split = [&] { NCCL(ncclCommSplit(rank.comm, 0, g_rank, &part, nullptr)); };
  if (g_rank == 0) {
    std::thread other([&] {
      CUDA(cudaSetDevice(0));
      raise_flag("splits");
      split();
    });
    await_flag("splits");
    usleep(200'000);  // it is inside, or the calls do not meet and the test sees nothing
    rank.all_reduce(70);
    raise_flag("reduced");
    other.join();
  } else {
    await_flag("reduced");
    split();
    rank.all_reduce(70);
  }
  CUDA(cudaStreamSynchronize(rank.stream));
  NCCL(ncclCommDestroy(part));
  rank.end();
}

// Two graphs, one over two streams, launched in turns; with `fewer`, rank 1 leaves out the last launch.
void replays(bool fewer) {
  Rank rank;
  cudaStream_t side = nullptr;
  cudaEvent_t fork = nullptr;
  cudaEvent_t join = nullptr;
  CUDA(cudaStreamCreate(&side));
  CUDA(cudaEventCreate(&fork));
  CUDA(cudaEventCreate(&join));
  void* graphs[2] = {};
  void* instances[2] = {};
  CUDA(cudaStreamBeginCapture(rank.stream, 1));
  rank.all_reduce(71);
  CUDA(cudaEventRecord(fork, rank.stream));
  CUDA(cudaStreamWaitEvent(side, fork, 0));
  NCCL(ncclBroadcast(rank.from, rank.to, 72, ncclFloat32, 0, rank.comm, side));
  CUDA(cudaEventRecord(join, side));
  CUDA(cudaStreamWaitEvent(rank.stream, join, 0));
  CUDA(cudaStreamEndCapture(rank.stream, &graphs[0]));
  CUDA(cudaStreamBeginCapture(rank.stream, 1));
  rank.all_reduce(73);
  CUDA(cudaStreamEndCapture(rank.stream, &graphs[1]));
  for (int i = 0; i < 2; ++i) CUDA(cudaGraphInstantiate(&instances[i], graphs[i], 0));
  for (int turn = 0; turn < 6; ++turn)
    if (!fewer || g_rank != 1 || turn != 5) CUDA(cudaGraphLaunch(instances[turn % 2], rank.stream));
  rank.end();
}

// A thread for each device, which has its communicator to itself.
void init_all_threads() {
  std::vector<ncclComm_t> comms(static_cast<size_t>(g_ranks));
  NCCL(ncclCommInitAll(comms.data(), g_ranks, nullptr));
  std::vector<std::thread> threads;
  for (int device = 0; device < g_ranks; ++device)
    threads.emplace_back([&comms, device] {
      CUDA(cudaSetDevice(device));
      for (size_t turn = 0; turn < 3; ++turn) reduce_on(comms[static_cast<size_t>(device)], nullptr, 80 + turn);
    });
  for (std::thread& thread : threads) thread.join();
  for (const ncclComm_t comm : comms) NCCL(ncclCommDestroy(comm));
}

}  // namespace

bool run_change(std::string_view scenario) {
  if (scenario == "scalable") scalable();
  else if (scenario == "shrink") shrink();
  else if (scenario == "comes_later") grow();
  else if (scenario == "signals") signals(0);
  else if (scenario == "driver_waits") driver_waits(false);
  else if (scenario == "driver_waits_crossed") driver_waits(true);
  else if (scenario == "signals_missing") signals(1);
  else if (scenario == "suspended") suspended(false);
  else if (scenario == "half_suspended") suspended(true);
  else if (scenario == "revoked") revoked();
  else if (scenario == "threads") threads();
  else if (scenario == "replays") replays(false);
  else if (scenario == "fewer_replays") replays(true);
  else if (scenario == "init_all_threads") init_all_threads();
  else return false;
  return true;
}
