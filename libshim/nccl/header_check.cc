// Compiled, never run: compares functions.def and api.h with the nccl.h of this machine, or of another version (tests/frameworks).
// Each row's parameters must be the header's to the type; each value and each offset of api.h the header's.
#include <type_traits>

#include "nccl/api.h"

// An overload under every name, so that a name that an older header lacks is still a name.
namespace lockstep::header_check {
struct Nothing {};
}  // namespace lockstep::header_check
#define NCCL_CALL(since, Name, params, args, ...) void nccl##Name(lockstep::header_check::Nothing);
#define NCCL_PLAIN(since, Result, Name, params, args, reason) void nccl##Name(lockstep::header_check::Nothing);
#include "nccl/functions.def"
#undef NCCL_CALL
#undef NCCL_PLAIN

#define NCCL_OS_LINUX 1  // else 2.32 turns a function into a macro
#include <nccl.h>

#include <cstddef>
#include <cstdint>

// Types that the header is too old for.
#if NCCL_VERSION_CODE < 22203
struct ncclSimInfo_t;
#endif
#if NCCL_VERSION_CODE < 22703
using ncclWindow_t = struct ncclWindow_vidmem*;
#endif
#if NCCL_VERSION_CODE < 22902
struct ncclWaitSignalDesc_t;
#endif
#if NCCL_VERSION_CODE < 22907
enum ncclCommMemStat_t : int;
#endif
#if NCCL_VERSION_CODE < 23007
using ncclParamHandle_t = struct ncclParamHandle*;
#endif
#if NCCL_VERSION_CODE < 23203
struct ncclCollConfig_t;
struct ncclEncryptionConfig_t;
#endif

namespace lockstep::header_check {

// The overload set holds a function of exactly the type F.
#define LOCKSTEP_SAME(since, Result, Name, params)                                                     \
  static_assert(since > NCCL_VERSION_CODE ||                                                           \
                    []<class F>(F*) { return requires(F * f) { f = &::nccl##Name; }; }(                \
                        static_cast<Result(*) params>(nullptr)),                                       \
                "parameters of nccl" #Name " differ from nccl.h");
#define NCCL_CALL(since, Name, params, args, ...) LOCKSTEP_SAME(since, ncclResult_t, Name, params)
#define NCCL_PLAIN(since, Result, Name, params, args, reason) LOCKSTEP_SAME(since, Result, Name, params)
#include "nccl/functions.def"
#undef NCCL_CALL
#undef NCCL_PLAIN

#define X(name, value, ...) static_assert(static_cast<int>(::name) == value, #name " differs from nccl.h");
#if NCCL_VERSION_CODE >= 23203
LOCKSTEP_NCCL_RESULTS(X)
static_assert(static_cast<int>(ncclNumResults) == 9, "there is a new result");
#endif
#if NCCL_VERSION_CODE >= 22403
LOCKSTEP_NCCL_DATATYPES(X)
static_assert(static_cast<int>(ncclNumTypes) == 12, "there is a new datatype");
#endif
LOCKSTEP_NCCL_REDOPS(X)
static_assert(static_cast<int>(ncclNumOps) == nccl::kFirstUserRedop, "there is a new operator");
LOCKSTEP_NCCL_RESIDENCES(X)
#if NCCL_VERSION_CODE >= 22907
LOCKSTEP_NCCL_MEMORY_FACTS(X)
static_assert(NCCL_SUSPEND_MEM == nccl::kSuspendMemory);
#endif
#undef X
static_assert(static_cast<int>(::ncclSuccess) == 0 && static_cast<int>(::ncclInvalidArgument) == 4 &&
              static_cast<int>(::ncclInvalidUsage) == 5);
static_assert(sizeof(::ncclResult_t) == sizeof(nccl::ncclResult_t));
static_assert(sizeof(::ncclDataType_t) == sizeof(nccl::ncclDataType_t));
static_assert(sizeof(::ncclRedOp_t) == sizeof(nccl::ncclRedOp_t));
static_assert(sizeof(::ncclUniqueId) == sizeof(nccl::ncclUniqueId));

#define LOCKSTEP_FIELD(Type, field)                                                                         \
  static_assert(offsetof(::Type, field) == offsetof(nccl::Type, field) &&                                   \
                    sizeof(::Type::field) == sizeof(nccl::Type::field),                                     \
                #Type "::" #field " differs from nccl.h");
#if NCCL_VERSION_CODE >= 21403
LOCKSTEP_FIELD(ncclConfig_t, size)
LOCKSTEP_FIELD(ncclConfig_t, magic)
LOCKSTEP_FIELD(ncclConfig_t, version)
LOCKSTEP_FIELD(ncclConfig_t, blocking)
static_assert(NCCL_CONFIG_UNDEF_INT == nccl::kUndefinedInt);
#endif
#if NCCL_VERSION_CODE >= 21801
LOCKSTEP_FIELD(ncclConfig_t, netName)
LOCKSTEP_FIELD(ncclConfig_t, splitShare)
static_assert(NCCL_SPLIT_NOCOLOR == nccl::kSplitNoColor);
#endif
#if NCCL_VERSION_CODE >= 22703
LOCKSTEP_FIELD(ncclConfig_t, trafficClass)
LOCKSTEP_FIELD(ncclConfig_t, commName)
LOCKSTEP_FIELD(ncclConfig_t, nvlsCTAs)
static_assert(NCCL_SHRINK_DEFAULT == nccl::kShrinkDefault && NCCL_SHRINK_ABORT == nccl::kShrinkAbort);
static_assert(NCCL_WIN_COLL_SYMMETRIC == nccl::kWindowSymmetric);
#endif
#if NCCL_VERSION_CODE >= 22803
LOCKSTEP_FIELD(ncclConfig_t, nvlinkCentricSched)
#endif
#if NCCL_VERSION_CODE >= 22902
LOCKSTEP_FIELD(ncclConfig_t, numRmaCtx)
LOCKSTEP_FIELD(ncclWaitSignalDesc_t, opCnt)
LOCKSTEP_FIELD(ncclWaitSignalDesc_t, peer)
LOCKSTEP_FIELD(ncclWaitSignalDesc_t, sigIdx)
LOCKSTEP_FIELD(ncclWaitSignalDesc_t, ctx)
static_assert(sizeof(::ncclWaitSignalDesc_t) == sizeof(nccl::ncclWaitSignalDesc_t));
#endif
#if NCCL_VERSION_CODE >= 22203
LOCKSTEP_FIELD(ncclSimInfo_t, size)
LOCKSTEP_FIELD(ncclSimInfo_t, estimatedTime)
static_assert(sizeof(::ncclSimInfo_t) == sizeof(nccl::ncclSimInfo_t));
#endif
#if NCCL_VERSION_CODE >= 23203
LOCKSTEP_FIELD(ncclConfig_t, graphStreamOrdering)
LOCKSTEP_FIELD(ncclConfig_t, launchOrderImplicit)
LOCKSTEP_FIELD(ncclConfig_t, nvlsHostMode)
LOCKSTEP_FIELD(ncclCollConfig_t, ext)
LOCKSTEP_FIELD(ncclCollConfig_t, algSelection)
LOCKSTEP_FIELD(ncclCollConfig_t, CTAPolicy)
LOCKSTEP_FIELD(ncclCollConfig_t, launchCompletionEvent)
LOCKSTEP_FIELD(ncclEncryptionConfig_t, psk)
#endif
#if NCCL_VERSION_CODE < 23203
static_assert(sizeof(::ncclConfig_t) <= sizeof(nccl::ncclConfig_t), "configs grow at the end");
#else
static_assert(sizeof(::ncclConfig_t) >= sizeof(nccl::ncclConfig_t) &&
              sizeof(::ncclCollConfig_t) >= sizeof(nccl::ncclCollConfig_t));
#endif

}  // namespace lockstep::header_check
