// Calls every entry of the real library that can be called without a GPU and prints what it gives: to be run with the recorder and
// without, and compared. Usage: abi_host [PATH]: the functions of the library it is linked with, or of one that it opens by dlopen.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "nccl_api.h"

namespace {

void* g_library = nullptr;

void* find(const char* name, void* linked) { return g_library != nullptr ? dlsym(g_library, name) : linked; }
#define CALL(Name) reinterpret_cast<decltype(&::nccl##Name)>(find("nccl" #Name, reinterpret_cast<void*>(&::nccl##Name)))
#define SAY(Name, ...)                                                              \
  do {                                                                              \
    auto* function = CALL(Name);                                                    \
    if (function == nullptr) std::printf("nccl" #Name " is absent\n");              \
    else std::printf("nccl" #Name " %d\n", static_cast<int>(function(__VA_ARGS__))); \
  } while (false)

ncclConfig_t make_config(int blocking) {
  ncclConfig_t config{};
  config.size = offsetof(ncclConfig_t, graphUsageMode);  // as 2.28 has it
  config.magic = kConfigMagic;
  config.version = 22809;
  int* const undefined[] = {&config.cgaClusterSize, &config.minCTAs,  &config.maxCTAs,     &config.splitShare,
                            &config.trafficClass,   &config.CTAPolicy, &config.shrinkShare, &config.collnetEnable,
                            &config.nvlsCTAs,       &config.nChannelsPerNetPeer, &config.nvlinkCentricSched};
  for (int* field : undefined) *field = kUndefinedInt;
  config.blocking = blocking;
  config.commName = "abi";
  return config;
}

void communicators() {
  ncclUniqueId id{};
  std::printf("ncclGetUniqueId %d\n", static_cast<int>(CALL(GetUniqueId)(&id)));
  bool any = false;
  for (const char c : id.internal) any = any || c != 0;
  std::printf("the id is %s\n", any ? "set" : "zero");
  ncclComm_t comm = nullptr;
  SAY(CommInitRank, &comm, 1, id, 0);
  std::printf("comm %s\n", comm == nullptr ? "null" : "set");
  SAY(CommInitRank, &comm, 0, id, 0);
  SAY(CommInitRank, &comm, 2, id, 2);
  SAY(CommInitRank, nullptr, 1, id, 0);
  ncclConfig_t config = make_config(0);
  SAY(CommInitRankConfig, &comm, 1, id, 0, &config);
  config.magic = 7;
  SAY(CommInitRankConfig, &comm, 1, id, 0, &config);
  config = make_config(1);
  ncclUniqueId ids[2] = {id, id};
  SAY(CommInitRankScalable, &comm, 2, 0, 2, ids, &config);
  SAY(CommInitRankScalable, &comm, 2, 0, 3, ids, &config);
  const int devices[] = {0, 1};
  ncclComm_t comms[2] = {};
  SAY(CommInitAll, comms, 2, devices);
  SAY(CommInitAll, comms, -1, nullptr);
  SAY(CommSplit, nullptr, 0, 0, &comm, nullptr);
  SAY(CommFinalize, nullptr);
  SAY(CommDestroy, nullptr);
  SAY(CommAbort, nullptr);
  SAY(CommRevoke, nullptr, 0);
  int value = -5;
  SAY(CommCount, nullptr, &value);
  SAY(CommUserRank, nullptr, &value);
  SAY(CommCuDevice, nullptr, &value);
  ncclResult_t error{};
  SAY(CommGetAsyncError, nullptr, &error);
  void* handle = nullptr;
  SAY(CommRegister, nullptr, &value, sizeof value, &handle);
  SAY(CommDeregister, nullptr, nullptr);
  ncclWindow_t window = nullptr;
  SAY(CommWindowRegister, nullptr, &value, sizeof value, &window, 0);
  SAY(CommWindowDeregister, nullptr, nullptr);
  SAY(MemAlloc, &handle, 4096);
  SAY(MemFree, nullptr);
}

void calls(size_t count) {
  float from[8] = {};
  float to[8] = {};
  SAY(AllReduce, from, to, count, ncclFloat32, ncclSum, nullptr, nullptr);
  SAY(Reduce, from, to, count, ncclFloat32, ncclMax, 0, nullptr, nullptr);
  SAY(ReduceScatter, from, to, count, ncclFloat32, ncclAvg, nullptr, nullptr);
  SAY(Broadcast, from, to, count, ncclBfloat16, 0, nullptr, nullptr);
  SAY(Bcast, to, count, ncclInt8, 0, nullptr, nullptr);
  SAY(AllGather, from, to, count, ncclInt64, nullptr, nullptr);
  SAY(AlltoAll, from, to, count, ncclFloat32, nullptr, nullptr);
  SAY(Gather, from, to, count, ncclFloat32, 0, nullptr, nullptr);
  SAY(Scatter, from, to, count, ncclFloat32, 0, nullptr, nullptr);
  SAY(Send, from, count, static_cast<ncclDataType_t>(99), 0, nullptr, nullptr);
  SAY(Recv, to, count, ncclFloat32, -7, nullptr, nullptr);
  ncclRedOp_t op{};
  float scalar = 2;
  SAY(RedOpCreatePreMulSum, &op, &scalar, ncclFloat32, ncclScalarHostImmediate, nullptr);
  SAY(RedOpDestroy, ncclSum, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    g_library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (g_library == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
  }
  int version = 0;
  SAY(GetVersion, &version);
  std::printf("version %d\n", version);
  for (int result = -1; result < 10; ++result) {
    std::printf("%d: %s\n", result, CALL(GetErrorString)(static_cast<ncclResult_t>(result)));
  }
  SAY(GroupStart);
  SAY(GroupEnd);
  SAY(GroupEnd);
  ncclSimInfo_t info{.size = sizeof(ncclSimInfo_t), .magic = kSimInfoMagic, .version = 22809, .estimatedTime = -1};
  SAY(GroupStart);
  SAY(GroupSimulateEnd, &info);
  calls(8);
  calls(0);
  SAY(GroupStart);
  SAY(GroupStart);
  calls(8);
  SAY(GroupEnd);
  SAY(GroupEnd);
  SAY(GroupStart);
  SAY(GroupEnd);
  communicators();
  std::printf("last error: %s\n", CALL(GetLastError)(nullptr));
  return 0;
}
