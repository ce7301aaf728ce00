// What stands in the ring and in the side area of a trace: call, extension and block records (64 bytes each), side records.
// Written by libshim, read by analyzer/read; FORMAT.md says how to read them and what to tolerate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lockstep/op_kind.h"
#include "lockstep/trace_format.h"

namespace lockstep::trace {

// ---- ring -----------------------------------------------------------------------------------------------------------

/// Byte 52 of a ring record: below 200 an OpKind, else one of these.
enum class RecordKind : std::uint8_t {
  kSecondHalf = 200,  ///< the other direction of a call that moves data both ways
  kRequests = 201,    ///< request ids of a completion call
  kCounts = 202,      ///< per-member counts of a v-collective
  kIssue = 203,       ///< where a call was issued to: stream, capture, group launch
  kCreation = 204,    ///< arguments of a communicator creation
  kName = 205,        ///< library function behind a kOpaque call
  kBlock = 250,       ///< first record of every block
};
inline constexpr std::uint8_t kFirstExtensionKind = 200;

/// CallRecord::flags.
enum CallFlags : std::uint8_t {
  kCallNonblocking = 1U << 0,   ///< returns before the operation is done
  kCallPersistent = 1U << 1,
  kCallInterComm = 1U << 2,     ///< communicator with two groups: root and peer are ranks of the other group
  kCallAnySource = 1U << 3,     ///< asked for any peer; `peer` is kAnySource until the call returned, then who it was (or still kAnySource)
  kCallAnyTag = 1U << 4,        ///< asked for any tag; `aux` is kAnyTagWord until the call returned, then the tag (or still kAnyTagWord)
  kCallSucceeded = 1U << 5,     ///< completion calls: something completed (a test whose flag came back true)
  kCallTruncated = 1U << 6,     ///< its extension records do not hold everything
  kCallOpaqueArgs = 1U << 7,    ///< an argument had no known meaning (datatype or operator unknown): compare kind and root only
};

inline constexpr std::int32_t kNoPeer = -1;
inline constexpr std::int32_t kAnySource = -2;
inline constexpr std::int32_t kProcNull = -3;   ///< MPI_PROC_NULL: matches nothing, never waits
inline constexpr std::int32_t kRootHere = -4;   ///< MPI_ROOT on an intercommunicator
inline constexpr std::uint32_t kAnyTagWord = 0xFFFF'FFFF;
inline constexpr std::uint32_t kNoPosition = 0xFFFF'FFFF;

/// One call of one thread. Committed by one 8-byte store of (aux, commit); completed by storing `result`, then `return_ticks`.
struct CallRecord {
  std::uint64_t enter_ticks = 0;
  std::uint64_t return_ticks = 0;  ///< 0 = the call had not returned
  std::uint64_t count = 0;         ///< basic elements: the caller's count x what one of its datatype holds; polls: how often repeated
  std::uint64_t detail = 0;        ///< collective: fingerprint after it; MPI point-to-point, completion: request id or 0;
                                   ///< NCCL point-to-point: fingerprint of this peer and direction, 0 = not kept; event calls: the event
  std::uint32_t comm = 0;          ///< id of a communicator side record; 0 = none, or it could not be stored
  std::uint32_t seq = 0;           ///< collective: position on `comm`, from 0; point-to-point: position in (comm, peer, direction) or kNoPosition
  std::int32_t peer = kNoPeer;     ///< root or partner, a rank of `comm`
  std::uint32_t call_site = 0;     ///< id of a call-site side record; 0 = not known
  std::uint16_t datatype = 0;      ///< id of a datatype side record; 0 = none or not known
  std::uint16_t redop = 0;         ///< id of an operator side record; 0 = none or not known
  std::uint8_t kind = 0;           ///< OpKind
  std::uint8_t flags = 0;          ///< CallFlags
  std::uint8_t result = 0;         ///< what the library returned, values over 255 as 255; 0 = success
  std::uint8_t extensions = 0;     ///< records after this one that belong to it
  std::uint32_t aux = 0;           ///< point-to-point: tag; nonblocking collective: request id; creation: id of the new communicator, stored at
                                   ///< return (0 = none); completion: how many requests it was given
  std::uint32_t commit = 0;        ///< low half of the block's number; any other value = nothing was committed here
};

/// kSecondHalf: recv side of sendrecv; the side of gather, allgather ... that CallRecord does not hold.
struct SecondHalfRecord {
  std::uint64_t count = 0;
  std::uint32_t tag = 0;
  std::int32_t peer = kNoPeer;
  std::uint32_t seq = kNoPosition;
  std::uint16_t datatype = 0;
  std::uint8_t flags = 0;       ///< kCallAnySource, kCallAnyTag
  std::uint8_t in_place = 0;    ///< 1: MPI_IN_PLACE, the library ignores this side
  std::uint8_t unused0[28] = {};
  std::uint8_t kind = 0;
  std::uint8_t unused1[7] = {};
  std::uint32_t commit = 0;
};

/// kRequests: `used` of `ids` hold request ids in the caller's order; 0 = MPI_REQUEST_NULL, kUnknownRequest = not one that was recorded.
struct RequestsRecord {
  std::uint32_t ids[12] = {};
  std::uint8_t unused0[4] = {};
  std::uint8_t kind = 0;
  std::uint8_t used = 0;
  std::uint8_t unused1[6] = {};
  std::uint32_t commit = 0;
};
inline constexpr std::uint32_t kUnknownRequest = 0xFFFF'FFFF;

/// kCounts: per-member counts in basic elements of the send (side 0) or receive (side 1) direction.
struct CountsRecord {
  std::uint64_t hash = 0;      ///< fold of mix(hash ^ counts[i], i + 1) from 0; equal vectors, equal hashes
  std::uint64_t total = 0;     ///< sum of all
  std::uint64_t counts[4] = {};///< the first four; all of them where members <= 4
  std::uint32_t members = 0;
  std::uint8_t kind = 0;
  std::uint8_t side = 0;
  std::uint16_t datatype = 0;
  std::uint32_t vector = 0;    ///< id of a kVector side record that holds all; 0 = not stored
  std::uint32_t commit = 0;
};

/// kIssue (NCCL, and calls of the CUDA runtime and driver that wait for what NCCL does).
struct IssueRecord {
  std::uint64_t stream = 0;
  std::uint64_t capture = 0;   ///< id of the graph capture it was recorded into; 0 = executed. kGraphLaunch: the capture that is executed
  std::uint32_t launch = 0;    ///< equal numbers of one process are issued together; 0 = alone
  std::int32_t device = -1;
  std::uint8_t unused0[28] = {};
  std::uint8_t kind = 0;
  std::uint8_t unused1[7] = {};
  std::uint32_t commit = 0;
};

/// kCreation.
struct CreationRecord {
  std::int32_t color = 0;      ///< split: colour; kNoColor for MPI_UNDEFINED
  std::int32_t key = 0;
  std::int32_t members = 0;    ///< size of the group passed; 0 = not passed
  std::uint32_t tag = 0;       ///< create_group, intercomm_create
  std::uint64_t group_hash = 0;///< fold over the world ranks of the group passed, as in CommRecord::identity; NCCL: hash of the unique ids
                               ///< passed (init, grow) or of the ranks excluded (shrink), 0 = none
  std::uint8_t blocking = 0;   ///< NCCL's config: 0 = not given, 1 = blocking, 2 = not blocking
  std::uint8_t unused0[27] = {};
  std::uint8_t kind = 0;
  std::uint8_t unused1[7] = {};
  std::uint32_t commit = 0;
};
inline constexpr std::int32_t kNoColor = -0x7FFF'FFFF - 1;

/// kName: name of the library function, zero-padded; cut to 52 bytes.
struct NameRecord {
  char name[52] = {};
  std::uint8_t kind = 0;
  std::uint8_t unused1[7] = {};
  std::uint32_t commit = 0;
};

/// kBlock: first record of a block. Blocks sorted by `number` give each thread's calls in order.
struct BlockRecord {
  std::uint64_t anchor_ticks = 0;    ///< one instant in ticks ...
  std::uint64_t anchor_unix_ns = 0;  ///< ... and in nanoseconds since 1970
  std::uint64_t number = 0;          ///< from 1, in the order in which blocks were opened
  std::uint32_t thread = 0;          ///< kernel thread id
  std::uint32_t thread_index = 0;    ///< from 0, in the order of the threads' first recorded calls
  std::uint8_t unused0[20] = {};
  std::uint8_t kind = 0;
  std::uint8_t unused1[7] = {};
  std::uint32_t commit = 0;
};

#define LOCKSTEP_RING_RECORD(Type)                                                                         \
  static_assert(sizeof(Type) == kRecordBytes && std::is_trivially_copyable_v<Type> &&                      \
                offsetof(Type, kind) == 52 && offsetof(Type, commit) == 60)
LOCKSTEP_RING_RECORD(CallRecord);
LOCKSTEP_RING_RECORD(SecondHalfRecord);
LOCKSTEP_RING_RECORD(RequestsRecord);
LOCKSTEP_RING_RECORD(CountsRecord);
LOCKSTEP_RING_RECORD(IssueRecord);
LOCKSTEP_RING_RECORD(CreationRecord);
LOCKSTEP_RING_RECORD(NameRecord);
LOCKSTEP_RING_RECORD(BlockRecord);
#undef LOCKSTEP_RING_RECORD

// ---- side area ------------------------------------------------------------------------------------------------------

enum class SideKind : std::uint8_t {
  kProcess = 1,
  kCommunicator = 2,
  kCommEnd = 3,
  kDatatype = 4,
  kRedop = 5,
  kCallSite = 6,
  kModule = 7,
  kVector = 8,
  kNote = 9,
  kCommName = 10,
  kLibrary = 11,
  kPythonSite = 12,
  kCommAlias = 13,
};

inline constexpr std::uint16_t kSideMagic = 0x4453;  ///< "SD"
/// SideHeader::state.
enum SideState : std::uint8_t { kSidePending = 1, kSideCommitted = 2 };

/// Starts every side record, at a multiple of 64 bytes; the record takes `bytes` rounded up to 64. One 8-byte store.
struct SideHeader {
  std::uint16_t magic = 0;
  SideKind kind{};
  std::uint8_t state = 0;
  std::uint32_t bytes = 0;  ///< with this header
};
static_assert(sizeof(SideHeader) == 8);

/// kProcess: once, first. Then six texts, each ended by a zero byte: host, program (file name of the executable), run, launcher,
/// recorder version, directory the run's files are in.
struct ProcessRecord {
  SideHeader header;
  std::int32_t pid = 0;
  std::int32_t parent_pid = 0;
  std::int32_t attempt = 0;      ///< restart count of the launcher
  std::int32_t env_rank = -1;    ///< rank and size that the launcher's variables gave; -1, 0 = none
  std::int32_t env_ranks = 0;
  std::int32_t local_rank = -1;
  std::uint64_t start_unix_ns = 0;
};
static_assert(sizeof(ProcessRecord) == 40);

/// CommRecord::library.
enum class Library : std::uint8_t { kMpi = 1, kNccl = 2, kTorch = 3 };
enum CommFlags : std::uint8_t {
  kCommInter = 1U << 0,          ///< two groups; `nranks` and members are of the local one, the remote follows
  kCommForeignMembers = 1U << 1, ///< some members are of another MPI_COMM_WORLD: members not listed
  kCommMembersCut = 1U << 2,     ///< too many ranges: members not listed
  kCommAdopted = 1U << 3,        ///< its creation was not seen
};

/// Members are ranges: ranks first, first + stride, ... (`ranks` of them), in order of communicator rank.
struct RankRange {
  std::int32_t first = 0;
  std::int32_t stride = 0;
  std::uint32_t ranks = 0;
};
static_assert(sizeof(RankRange) == 12);

/// kCommunicator. Then `ranges` RankRange, `remote_ranges` RankRange, then the name, ended by a zero byte.
struct CommRecord {
  SideHeader header;
  std::uint32_t comm = 0;        ///< id within this file, from 1
  std::uint32_t parent = 0;      ///< 0 = none
  std::uint64_t identity = 0;    ///< equal on all members, different for any other communicator of the run
  std::uint64_t created_ticks = 0;
  std::uint32_t creation = 0;    ///< how many communicators with these very members were made before, from 0
  std::int32_t rank = 0;         ///< the caller's, in this communicator
  std::int32_t nranks = 0;
  std::int32_t device = -1;
  Library library = Library::kMpi;
  std::uint8_t flags = 0;        ///< CommFlags
  std::uint8_t kind = 0;         ///< OpKind of the creating call; kInit for what the library brings
  std::uint8_t unused0 = 0;
  std::uint32_t ranges = 0;
  std::uint32_t remote_ranges = 0;
  std::uint32_t unused1 = 0;
};
static_assert(sizeof(CommRecord) == 64);

/// kCommEnd: the communicator was freed, its table entry may serve another one; its last state.
struct CommEndRecord {
  SideHeader header;
  std::uint32_t comm = 0;
  std::uint32_t flags = 0;       ///< CommEntryFlags
  std::uint64_t calls = 0;
  std::uint64_t fingerprint = 0;
};
static_assert(sizeof(CommEndRecord) == 32);

/// kCommAlias: some members of the communicator know it under another identity: of NCCL's grow, those that come have the unique id only,
/// those that were there the parent, and one of them both.
struct CommAliasRecord {
  SideHeader header;
  std::uint32_t comm = 0;
  std::uint32_t unused = 0;
  std::uint64_t identity = 0;    ///< the others' CommRecord::identity
};
static_assert(sizeof(CommAliasRecord) == 24);

/// kDatatype, kRedop. Then the name, ended by a zero byte: "MPI_DOUBLE", "{MPI_INT,2*MPI_DOUBLE}", "MPI_SUM", "user 3".
struct NamedRecord {
  SideHeader header;
  std::uint32_t id = 0;
  std::uint32_t bytes = 0;       ///< datatype: size of one unit; 0 = not known
  std::uint64_t hash = 0;        ///< compare this across ranks: equal = same signature, or same operator
};
static_assert(sizeof(NamedRecord) == 24);

/// kCallSite: return address of the call, as it was in memory. The instruction before it made the call.
struct CallSiteRecord {
  SideHeader header;
  std::uint32_t site = 0;
  std::uint32_t module = 0;      ///< 0 = in no known file
  std::uint64_t address = 0;
  std::uint64_t file_offset = 0; ///< where that address is in the module's file
};
static_assert(sizeof(CallSiteRecord) == 32);

/// kModule: one executable mapping. Then the build id (`build_id_bytes`), then the path, ended by a zero byte.
struct ModuleRecord {
  SideHeader header;
  std::uint32_t module = 0;
  std::uint32_t build_id_bytes = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t file_offset = 0;
};
static_assert(sizeof(ModuleRecord) == 40);

/// kVector: `values` 64-bit numbers follow.
struct VectorRecord {
  SideHeader header;
  std::uint32_t vector = 0;
  std::uint32_t values = 0;
  std::uint64_t hash = 0;
};
static_assert(sizeof(VectorRecord) == 24);

/// kNote, kLibrary (version text of the library), kCommName: text ended by a zero byte follows.
struct TextRecord {
  SideHeader header;
  std::uint32_t subject = 0;     ///< kCommName: the communicator; kLibrary: a trace::Library, 0 = MPI; kNote: NoteSubject; else 0
  std::uint32_t unused = 0;
  std::uint64_t ticks = 0;
};
static_assert(sizeof(TextRecord) == 24);

/// TextRecord::subject of a kNote that says something else than that the recorder could not do something.
enum NoteSubject : std::uint32_t {
  kNoteImplicitLaunchOrder = 1,  ///< NCCL_LAUNCH_ORDER_IMPLICIT, the value as text
  kNoteDevice = 2,               ///< the process took a GPU, by the call named: calls of NCCL are to be expected
};

/// kPythonSite: `frames` frames, innermost first; each is a u32 line, then file and function, both ended by a zero byte.
struct PythonSiteRecord {
  SideHeader header;
  std::uint32_t site = 0;
  std::uint32_t frames = 0;
};
static_assert(sizeof(PythonSiteRecord) == 16);

}  // namespace lockstep::trace
