// NCCL's binary interface, as far as the recorder and the stand-in meet it: values of the enumerations, layouts of the structs that a
// caller passes. Declared here anew, so that neither needs nccl.h or CUDA to build; header_check.cc compares every one of them with an
// nccl.h where one is found. RCCL has the same values.
//
// Structs only ever grew at their end, and begin with the size that the caller was compiled with: fields beyond it are not there.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

// CUDA's handle of a stream and an event; both are pointers to types that nobody outside of CUDA knows.
struct CUstream_st;
struct CUevent_st;

namespace lockstep::nccl {

using cudaStream_t = ::CUstream_st*;
using cudaEvent_t = ::CUevent_st*;

using ncclComm_t = struct ncclComm*;
using ncclWindow_t = struct ncclWindow_vidmem*;
using ncclParamHandle_t = struct ncclParamHandle*;

inline constexpr int kUniqueIdBytes = 128;
struct ncclUniqueId {
  char internal[kUniqueIdBytes];
};

// X(name, value), the results in order; 2.32 added the timeout, so a number above what one knows is to be expected.
#define LOCKSTEP_NCCL_RESULTS(X) \
  X(ncclSuccess, 0)              \
  X(ncclUnhandledCudaError, 1)   \
  X(ncclSystemError, 2)          \
  X(ncclInternalError, 3)        \
  X(ncclInvalidArgument, 4)      \
  X(ncclInvalidUsage, 5)         \
  X(ncclRemoteError, 6)          \
  X(ncclInProgress, 7)           \
  X(ncclTimeout, 8)

// X(name, value, bytes, name in reports). fp8 since 2.24.3, bfloat16 and the average since 2.10.3.
#define LOCKSTEP_NCCL_DATATYPES(X)     \
  X(ncclInt8, 0, 1, "i8")              \
  X(ncclUint8, 1, 1, "u8")             \
  X(ncclInt32, 2, 4, "i32")            \
  X(ncclUint32, 3, 4, "u32")           \
  X(ncclInt64, 4, 8, "i64")            \
  X(ncclUint64, 5, 8, "u64")           \
  X(ncclFloat16, 6, 2, "f16")          \
  X(ncclFloat32, 7, 4, "f32")          \
  X(ncclFloat64, 8, 8, "f64")          \
  X(ncclBfloat16, 9, 2, "bf16")        \
  X(ncclFloat8e4m3, 10, 1, "f8e4m3")   \
  X(ncclFloat8e5m2, 11, 1, "f8e5m2")

// X(name, value, name in reports). From kFirstUserRedop on: made by ncclRedOpCreatePreMulSum, other numbers on every rank.
#define LOCKSTEP_NCCL_REDOPS(X) \
  X(ncclSum, 0, "sum")          \
  X(ncclProd, 1, "prod")        \
  X(ncclMax, 2, "max")          \
  X(ncclMin, 3, "min")          \
  X(ncclAvg, 4, "avg")
inline constexpr int kFirstUserRedop = 5;

#define LOCKSTEP_NCCL_RESIDENCES(X) \
  X(ncclScalarDevice, 0)            \
  X(ncclScalarHostImmediate, 1)

#define LOCKSTEP_NCCL_MEMORY_FACTS(X) \
  X(ncclStatGpuMemSuspend, 0)         \
  X(ncclStatGpuMemSuspended, 1)       \
  X(ncclStatGpuMemPersist, 2)         \
  X(ncclStatGpuMemTotal, 3)

// Unscoped and of a fixed type: a caller may pass any number.
#define X(name, value, ...) name = value,
enum ncclResult_t : int { LOCKSTEP_NCCL_RESULTS(X) };
enum ncclDataType_t : int { LOCKSTEP_NCCL_DATATYPES(X) };
enum ncclRedOp_t : int { LOCKSTEP_NCCL_REDOPS(X) };
enum ncclScalarResidence_t : int { LOCKSTEP_NCCL_RESIDENCES(X) };
enum ncclCommMemStat_t : int { LOCKSTEP_NCCL_MEMORY_FACTS(X) };
#undef X

inline constexpr int kUndefinedInt = INT_MIN;        ///< a field of a config that the caller left alone
inline constexpr unsigned kConfigMagic = 0xCAFE'BEEF;  ///< of ncclConfig_t, ncclCollConfig_t, ncclEncryptionConfig_t
inline constexpr unsigned kSimInfoMagic = 0x7468'5283;
inline constexpr int kSplitNoColor = -1;
inline constexpr int kShrinkDefault = 0;
inline constexpr int kShrinkAbort = 1;
inline constexpr int kWindowSymmetric = 1;
inline constexpr int kSuspendMemory = 1;

/// How a communicator is made (2.14.3). The fields came, in this order, with 2.14, 2.17 (cgaClusterSize ...), 2.18 (splitShare), 2.26
/// (trafficClass), 2.27 (commName ...), 2.28 (nChannelsPerNetPeer ...), 2.29 (graphUsageMode ...), 2.30, 2.31 and 2.32.
struct ncclConfig_t {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
  int graphUsageMode;
  int numRmaCtx;
  int maxP2pPeers;
  int graphStreamOrdering;
  int launchOrderImplicit;
  int numRmaSig;
  int rmaEagerInit;
  int hostCftMode;
  int nvlsHostMode;
};

/// Of the ...Config collectives (2.32). `ext` begins a list of vendors' options.
struct ncclCollConfig_t {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
  void* ext;
  int minCTAs;
  int maxCTAs;
  int nvlsCTAs;
  int cgaClusterSize;
  const char* algSelection;
  int forceAlgSelection;
  int CTAPolicy;
  std::uint64_t userProfilerTag;
  cudaEvent_t launchCompletionEvent;
};

/// Of ncclGroupSimulateEnd (2.22.3).
struct ncclSimInfo_t {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime;
};

/// `opCnt` signals from `peer` (2.29.2).
struct ncclWaitSignalDesc_t {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
};

/// Of ncclSetEncryption (2.32).
struct ncclEncryptionConfig_t {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
  int mode;
  const char* psk;
};

}  // namespace lockstep::nccl
