// The frame of a trace file: magic, header, communicator table, side area, ring. Records are in trace_record.h; prose,
// reading rules and a worked example in ../../FORMAT.md. Everything is little-endian; the reader needs nothing else.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace lockstep::trace {

static_assert(std::endian::native == std::endian::little, "traces are little-endian; a big-endian host would have to swap");

/// First eight bytes of a trace, as a little-endian word: 89 'L' 'S' 'T' 0D 0A 1A 0A. Stored last when a file is made.
inline constexpr std::uint64_t kMagic = 0x0A1A'0A0D'5453'4C89ULL;

/// Written into `version`. History in FORMAT.md.
inline constexpr std::uint32_t kVersion = 1;
/// Written into `min_reader`: a reader that knows at least this version gets nothing wrong by ignoring what it does not know.
inline constexpr std::uint32_t kMinReader = 1;

inline constexpr std::uint32_t kHeaderBytes = 4096;
inline constexpr std::uint32_t kRecordBytes = 64;
inline constexpr std::uint32_t kBlockBytes = 32 * 1024;  ///< one thread's stretch of the ring
inline constexpr std::uint32_t kRecordsPerBlock = kBlockBytes / kRecordBytes;  ///< with the block header, which is number 0

/// FileHeader::state, OR-ed in over time and never cleared.
enum StateBits : std::uint32_t {
  kStateStopped = 1U << 0,        ///< the recorder switched itself off; a kNote side record says why
  kStateSideFull = 1U << 1,       ///< side records were dropped: some ids have no record
  kStateCommTableFull = 1U << 2,  ///< more live communicators than table entries: their fingerprints are unverified
  kStateForkedFrom = 1U << 3,     ///< the process is a fork of one that recorded; its file starts in the middle
  kStateConcurrent = 1U << 4,     ///< a communicator was used by two threads at once
  kStateNested = 1U << 5,         ///< a call was left by a jump or an exception; it stays "entered" although it ended
};

/// FileHeader::end.
enum class ProcessEnd : std::uint32_t {
  kUnknown = 0,  ///< still there, killed, or left by _exit: the trace cannot tell
  kExited = 1,   ///< exit() or return from main; `exit_status` is what it was given
};

/// First page of the file. Fields up to `created_ticks` are final once the magic is there; the rest change while the
/// process runs, each by one aligned store.
struct FileHeader {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t min_reader = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t record_bytes = 0;
  std::uint64_t file_bytes = 0;         ///< size that was reserved; a shorter file was cut
  std::uint64_t comm_table_offset = 0;
  std::uint32_t comm_entry_bytes = 0;
  std::uint32_t comm_entry_count = 0;
  std::uint64_t side_offset = 0;
  std::uint64_t side_bytes = 0;
  std::uint64_t ring_offset = 0;
  std::uint32_t block_bytes = 0;
  std::uint32_t block_count = 0;
  std::uint64_t ticks_per_second = 0;   ///< 0 = not known: derive it from anchors
  std::int32_t pid = 0;
  std::int32_t local_rank = -1;         ///< -1 = not known
  std::uint64_t start_unix_ns = 0;      ///< when the recorder was loaded
  std::uint64_t start_ticks = 0;        ///< same instant in ticks: the first anchor
  std::uint64_t created_unix_ns = 0;    ///< when the file was made: the second anchor
  std::uint64_t created_ticks = 0;
  // Changing part, from byte 128.
  std::uint64_t side_used = 0;          ///< bytes of the side area handed out
  std::uint64_t blocks_opened = 0;      ///< number of the newest block; blocks are numbered from 1
  std::uint64_t records_dropped = 0;    ///< records that found no block
  std::uint32_t state = 0;              ///< StateBits
  ProcessEnd end = ProcessEnd::kUnknown;
  std::uint64_t end_ticks = 0;          ///< when `end` was set
  std::int32_t exit_status = 0;         ///< of kExited, as given to exit(): the parent sees the low 8 bits
  std::int32_t job_rank = -1;           ///< -1 = not known (yet)
  std::int32_t job_ranks = 0;           ///< size of the job; 0 = not known
  std::uint32_t finalized = 0;          ///< 0 no, 1 entered, 2 returned: MPI_Finalize, ncclCommFinalize of the job
  std::uint32_t aborted = 0;            ///< 1: MPI_Abort was called with `abort_code`
  std::int32_t abort_code = 0;
  std::uint8_t unused[3904] = {};
};
static_assert(sizeof(FileHeader) == kHeaderBytes && std::is_trivially_copyable_v<FileHeader>);
static_assert(offsetof(FileHeader, created_ticks) == 120 && offsetof(FileHeader, side_used) == 128);

/// A position and the fingerprint of everything up to it; `calls` is stored last.
struct Checkpoint {
  std::uint64_t fingerprint = 0;
  std::uint64_t calls = 0;  ///< collectives so far; 0 = nothing here
};

inline constexpr std::uint32_t kFirstLevel = 6;   ///< checkpoints stand at multiples of 2^6 calls
inline constexpr std::uint32_t kLevels = 32;      ///< and of 2^7 ... 2^37

/// Agreement of one live communicator, independent of how much of the ring is left.
struct CommEntry {
  std::uint32_t comm = 0;   ///< id of its side record; 0 = entry free. Stored last when an entry is taken.
  std::uint32_t flags = 0;  ///< CommEntryFlags
  std::uint64_t reserved = 0;
  Checkpoint now[2] = {};   ///< newest state: the one with the larger `calls`; call n is in now[n % 2]
  std::uint64_t first[kLevels] = {};            ///< fingerprint after exactly 2^(6+i) calls; 0 = not that far
  Checkpoint latest[kLevels][2] = {};           ///< after the last two multiples of 2^(6+i): calls c in [i][(c >> (6+i)) & 1]
  std::uint8_t unused[16] = {};
};
enum CommEntryFlags : std::uint32_t {
  kCommConcurrent = 1U << 0,  ///< two threads were in it at once: positions and fingerprints mean nothing
  kCommLateStart = 1U << 1,   ///< first seen after calls on it may have been made (recorder started later, fork)
  kCommUnverified = 1U << 2,  ///< a call had an argument of unknown meaning: fingerprints mean nothing, positions do
};
static_assert(sizeof(CommEntry) == 1344 && sizeof(CommEntry) % 64 == 0 && std::is_trivially_copyable_v<CommEntry>);

// ---- the running hash, the same on every host and in every version -------------------------------------------------

/// 64-bit FNV-1a of bytes: names of datatypes and operators.
constexpr std::uint64_t text_hash(const char* text, std::size_t length) {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325ULL;
  for (std::size_t i = 0; i < length; ++i) {
    hash ^= static_cast<unsigned char>(text[i]);
    hash *= 0x0000'0100'0000'01B3ULL;
  }
  return hash;
}

/// Both halves of a 64x64-bit product, XOR-ed.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9E37'79B9'7F4A'7C15ULL) * static_cast<Wide>(b ^ 0xD1B5'4A32'D192'ED03ULL);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// What must agree in one collective. `shape` = kind | nonblocking << 8 | persistent << 9 | (root + 1) << 32, root 0 where there is none
/// (so bits 32.. are 0 without a root); `count` and `type` and `redop` 0 where they need not agree.
constexpr std::uint64_t signature(std::uint64_t shape, std::uint64_t count, std::uint64_t type, std::uint64_t redop) {
  return mix(shape + redop, mix(count, type));
}

/// Fingerprint after call number `calls` (from 1) with that signature; before the first call it is 0. Never 0 after one.
constexpr std::uint64_t advance(std::uint64_t fingerprint, std::uint64_t signature_of_call, std::uint64_t calls) {
  const std::uint64_t next = mix(fingerprint ^ signature_of_call, calls);
  return next == 0 ? 1 : next;
}

}  // namespace lockstep::trace
