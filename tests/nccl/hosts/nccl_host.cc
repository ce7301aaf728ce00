// Programs of NCCL and CUDA without kernels, one scenario each: nccl_host SCENARIO RANKS DIRECTORY. Starts itself once per rank with RANK and
// WORLD_SIZE set, as a launcher does (scenarios of one process: not at all); the unique id goes through a file in DIRECTORY. Ends with
// 0, with 3 where a rank was killed after standing still for LIMIT seconds (4), or with 1.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "nccl_scenario.h"

namespace {

void collectives() {
  Rank rank;
  rank.all_reduce(100);
  NCCL(ncclBroadcast(rank.from, rank.to, 10, ncclInt32, 1, rank.comm, rank.stream));
  NCCL(ncclBcast(rank.to, 11, ncclUint8, 0, rank.comm, rank.stream));
  NCCL(ncclReduce(rank.from, rank.to, 12, ncclFloat64, ncclMax, 1, rank.comm, rank.stream));
  NCCL(ncclAllGather(rank.from, rank.to, 13, ncclInt64, rank.comm, rank.stream));
  NCCL(ncclReduceScatter(rank.from, rank.to, 14, ncclFloat32, ncclAvg, rank.comm, rank.stream));
  NCCL(ncclAlltoAll(rank.from, rank.to, 15, ncclFloat32, rank.comm, rank.stream));
  NCCL(ncclGather(rank.from, rank.to, 16, ncclFloat32, 0, rank.comm, rank.stream));
  NCCL(ncclScatter(rank.from, rank.to, 17, ncclFloat32, 0, rank.comm, rank.stream));
  ncclRedOp_t op{};
  float scalar = 0.5F;
  NCCL(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, rank.comm));
  NCCL(ncclAllReduce(rank.from, rank.to, 18, ncclFloat32, op, rank.comm, rank.stream));
  NCCL(ncclRedOpDestroy(op, rank.comm));
  // Refused: no such root.
  must(ncclBroadcast(rank.from, rank.to, 10, ncclInt32, 77, rank.comm, rank.stream) == ncclInvalidArgument, "root 77");
  rank.all_reduce(19);
  rank.end();
}

void ring() {
  Rank rank;
  const int next = (g_rank + 1) % g_ranks;
  const int previous = (g_rank + g_ranks - 1) % g_ranks;
  for (int turn = 0; turn < 3; ++turn) {
    NCCL(ncclGroupStart());
    NCCL(ncclSend(rank.from, 32, ncclFloat32, next, rank.comm, rank.stream));
    NCCL(ncclRecv(rank.to, 32, ncclFloat32, previous, rank.comm, rank.stream));
    NCCL(ncclGroupEnd());
  }
  rank.end();
}

void split() {
  Rank rank;
  ncclComm_t half = nullptr;
  NCCL(ncclCommSplit(rank.comm, g_rank % 2, -g_rank, &half, nullptr));
  ncclComm_t some = nullptr;
  NCCL(ncclCommSplit(rank.comm, g_rank == 0 ? kSplitNoColor : 7, 0, &some, nullptr));
  must((some == nullptr) == (g_rank == 0), "no colour");
  NCCL(ncclAllReduce(rank.from, rank.to, 8, ncclFloat32, ncclSum, half, rank.stream));
  if (some != nullptr) NCCL(ncclAllReduce(rank.from, rank.to, 9, ncclFloat32, ncclSum, some, rank.stream));
  CUDA(cudaStreamSynchronize(rank.stream));
  NCCL(ncclCommDestroy(half));
  if (some != nullptr) NCCL(ncclCommDestroy(some));
  rank.end();
}

void waits() {
  Rank rank;
  cudaStream_t other = nullptr;
  cudaEvent_t done = nullptr;
  CUDA(cudaStreamCreate(&other));
  CUDA(cudaEventCreate(&done));
  CUDA(cudaStreamSynchronize(other));    // nothing to wait for: not recorded
  CUDA(cudaEventRecord(done, other));    // not recorded
  CUDA(cudaEventSynchronize(done));      // not recorded
  rank.all_reduce();
  CUDA(cudaEventRecord(done, rank.stream));
  CUDA(cudaStreamWaitEvent(other, done, 0));
  CUDA(cudaStreamSynchronize(other));
  CUDA(cudaStreamSynchronize(other));    // not recorded
  rank.all_reduce();
  CUDA(cudaEventRecord(done, rank.stream));
  CUDA(cudaEventSynchronize(done));
  rank.all_reduce();
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaDeviceSynchronize());         // not recorded
  rank.all_reduce();
  rank.end();
}

void graph() {
  Rank rank;
  void* captured = nullptr;
  void* exec = nullptr;
  CUDA(cudaStreamBeginCapture(rank.stream, 1));
  rank.all_reduce(20);
  NCCL(ncclGroupStart());
  rank.all_reduce(21);
  NCCL(ncclGroupEnd());
  CUDA(cudaStreamEndCapture(rank.stream, &captured));
  CUDA(cudaGraphInstantiate(&exec, captured, 0));
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(exec, rank.stream));
  rank.all_reduce(22);
  rank.end();
}

// One process, a device and a stream of it a rank.
void reduce_on_all(const std::vector<ncclComm_t>& comms) {
  std::vector<cudaStream_t> streams(comms.size());
  void* buffer = nullptr;
  CUDA(cudaMalloc(&buffer, 1 << 16));
  for (size_t i = 0; i < comms.size(); ++i) {
    CUDA(cudaSetDevice(static_cast<int>(i)));
    CUDA(cudaStreamCreate(&streams[i]));
  }
  NCCL(ncclGroupStart());
  for (size_t i = 0; i < comms.size(); ++i) NCCL(ncclAllReduce(buffer, buffer, 30, ncclFloat32, ncclSum, comms[i], streams[i]));
  NCCL(ncclGroupEnd());
  for (const cudaStream_t stream : streams) CUDA(cudaStreamSynchronize(stream));
  for (const ncclComm_t comm : comms) NCCL(ncclCommDestroy(comm));
}

void init_all() {
  std::vector<ncclComm_t> comms(static_cast<size_t>(g_ranks));
  NCCL(ncclCommInitAll(comms.data(), g_ranks, nullptr));
  reduce_on_all(comms);
}

// One thread for all devices, which waits for the first before it issues to the others: it stands there for good.
void init_all_one_by_one() {
  std::vector<ncclComm_t> comms(static_cast<size_t>(g_ranks));
  NCCL(ncclCommInitAll(comms.data(), g_ranks, nullptr));
  alarm(2);
  std::vector<float> data(8, 1.0F);
  for (size_t i = 0; i < comms.size(); ++i) {
    CUDA(cudaSetDevice(static_cast<int>(i)));
    cudaStream_t stream = nullptr;
    CUDA(cudaStreamCreate(&stream));
    NCCL(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, comms[i], stream));
    CUDA(cudaStreamSynchronize(stream));
  }
}

// A thread for each device; the last one does something else.
void init_all_by_threads() {
  std::vector<ncclComm_t> comms(static_cast<size_t>(g_ranks));
  NCCL(ncclCommInitAll(comms.data(), g_ranks, nullptr));
  alarm(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < comms.size(); ++i) {
    threads.emplace_back([comm = comms[i], i, last = i + 1 == comms.size()] {
      if (last) sleep(10);
      std::vector<float> data(8, 1.0F);
      CUDA(cudaSetDevice(static_cast<int>(i)));
      cudaStream_t stream = nullptr;
      CUDA(cudaStreamCreate(&stream));
      NCCL(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, comm, stream));
      CUDA(cudaStreamSynchronize(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The same, made one by one in a group: handles are known at its end only.
void grouped_init() {
  std::vector<ncclComm_t> comms(static_cast<size_t>(g_ranks));
  const ncclUniqueId id = shared_id("world");
  NCCL(ncclGroupStart());
  for (size_t i = 0; i < comms.size(); ++i) {
    CUDA(cudaSetDevice(static_cast<int>(i)));
    NCCL(ncclCommInitRank(&comms[i], g_ranks, id, static_cast<int>(i)));
  }
  NCCL(ncclGroupEnd());
  reduce_on_all(comms);
}

void non_blocking() {
  ncclConfig_t config{};
  config.size = offsetof(ncclConfig_t, graphUsageMode);
  config.magic = kConfigMagic;
  config.version = 22809;
  for (int* field : {&config.cgaClusterSize, &config.minCTAs, &config.maxCTAs, &config.splitShare, &config.trafficClass,
                     &config.collnetEnable, &config.CTAPolicy, &config.shrinkShare, &config.nvlsCTAs, &config.nChannelsPerNetPeer,
                     &config.nvlinkCentricSched}) {
    *field = kUndefinedInt;
  }
  config.commName = "patient";
  ncclComm_t comm = nullptr;
  ncclComm_t part = nullptr;
  const ncclResult_t made = ncclCommInitRankConfig(&comm, g_ranks, shared_id("world"), g_rank, &config);
  must(made == ncclSuccess || made == ncclInProgress, "init", static_cast<int>(made));
  wait_until_made(comm);
  const ncclResult_t split = ncclCommSplit(comm, 0, g_rank, &part, nullptr);
  must(split == ncclSuccess || split == ncclInProgress, "split", static_cast<int>(split));
  wait_until_made(comm);
  wait_until_made(part);
  void* buffer = nullptr;
  CUDA(cudaMalloc(&buffer, 1 << 16));
  const ncclResult_t issued = ncclAllReduce(buffer, buffer, 50, ncclFloat32, ncclSum, part, nullptr);
  must(issued == ncclSuccess || issued == ncclInProgress, "all_reduce", static_cast<int>(issued));
  wait_until_made(part);
  CUDA(cudaStreamSynchronize(nullptr));
  ncclCommDestroy(part);
  ncclCommDestroy(comm);
}

void skipped() {
  Rank rank;
  rank.all_reduce(40);
  if (g_rank != 1) rank.all_reduce(41);
  CUDA(cudaStreamSynchronize(rank.stream));
  NCCL(ncclAllGather(rank.from, rank.to, 42, ncclFloat32, rank.comm, rank.stream));
  rank.end();
}

/// The last rank joins a communicator of the others, which go on with it.
void grown() {
  CUDA(cudaSetDevice(g_rank));
  void* buffer = nullptr;
  CUDA(cudaMalloc(&buffer, 1 << 16));
  const bool is_new = g_rank == g_ranks - 1;
  ncclComm_t old = nullptr;
  ncclComm_t comm = nullptr;
  if (!is_new) NCCL(ncclCommInitRank(&old, g_ranks - 1, shared_id("old"), g_rank));
  if (g_rank == 0 || is_new) {
    const ncclUniqueId id = shared_id("grown");
    NCCL(ncclCommGrow(old, g_ranks, &id, is_new ? g_rank : -1, &comm, nullptr));
  } else {
    NCCL(ncclCommGrow(old, g_ranks, nullptr, -1, &comm, nullptr));
  }
  NCCL(ncclAllReduce(buffer, buffer, 60, ncclFloat32, ncclSum, comm, nullptr));
  CUDA(cudaStreamSynchronize(nullptr));
  NCCL(ncclCommDestroy(comm));
}

/// Rank 1 is left out; of those that stay, rank 2 leaves where `missing`.
void shrunk(bool missing) {
  Rank rank;
  rank.all_reduce();
  CUDA(cudaStreamSynchronize(rank.stream));
  if (g_rank == 1 || (missing && g_rank == 2)) return;
  int excluded[] = {1};
  ncclComm_t comm = nullptr;
  NCCL(ncclCommShrink(rank.comm, excluded, 1, &comm, nullptr, 0));
  NCCL(ncclAllReduce(rank.from, rank.to, 61, ncclFloat32, ncclSum, comm, rank.stream));
  CUDA(cudaStreamSynchronize(rank.stream));
  NCCL(ncclCommDestroy(comm));
}

void absent() {
  CUDA(cudaSetDevice(0));
  if (g_rank == g_ranks - 1) pause();
  Rank rank;
  rank.all_reduce();
  rank.end();
}

// As a program whose NCCL the recorder does not see.
void silent() { CUDA(cudaSetDevice(0)); }

int run_scenario(std::string_view scenario) {
  if (scenario == "collectives") collectives();
  else if (scenario == "ring") ring();
  else if (scenario == "split") split();
  else if (scenario == "waits") waits();
  else if (scenario == "graph") graph();
  else if (scenario == "init_all") init_all();
  else if (scenario == "skipped") skipped();
  else if (scenario == "init_all_one_by_one") init_all_one_by_one();
  else if (scenario == "init_all_by_threads") init_all_by_threads();
  else if (scenario == "absent") absent();
  else if (scenario == "grown") grown();
  else if (scenario == "shrunk") shrunk(false);
  else if (scenario == "shrink_missed") shrunk(true);
  else if (scenario == "silent") silent();
  else if (scenario == "grouped_init") grouped_init();
  else if (scenario == "non_blocking") non_blocking();
  else return run_change(scenario) ? 0 : 1;
  return 0;
}

int launch(char** argv) {
  constexpr unsigned kLimit = 4;
  std::vector<pid_t> children;
  for (int rank = 0; rank < g_ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("RANK", std::to_string(rank).c_str(), 1);
      setenv("WORLD_SIZE", std::to_string(g_ranks).c_str(), 1);
      execv("/proc/self/exe", argv);
      _exit(127);
    }
    children.push_back(child);
  }
  int result = 0;
  unsigned waited_ms = 0;
  for (size_t ended = 0; ended < children.size();) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, waited_ms < kLimit * 1000 ? WNOHANG : 0);
    if (child > 0) {
      ++ended;
      if (WIFSIGNALED(status)) result = 3;
      else if (WEXITSTATUS(status) != 0 && result == 0) result = 1;
      for (pid_t& one : children) {
        if (one == child) one = 0;
      }
      continue;
    }
    usleep(10000);
    waited_ms += 10;
    if (waited_ms < kLimit * 1000) continue;
    for (const pid_t one : children) {
      if (one > 0) kill(one, SIGKILL);
    }
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  g_ranks = std::atoi(argv[2]);
  g_directory = argv[3];
  const char* rank = std::getenv("RANK");
  const std::string_view scenario = argv[1];
  if (rank == nullptr && !scenario.starts_with("init_all") && scenario != "grouped_init") return launch(argv);
  g_rank = rank != nullptr ? std::atoi(rank) : 0;
  return run_scenario(argv[1]);
}
