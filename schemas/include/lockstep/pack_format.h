// The container that `lockstep pack` writes: many small trace files in one compressed file. Prose in ../../FORMAT.md.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lockstep::pack {

/// First eight bytes of a pack, as a little-endian word: 89 'L' 'S' 'P' 0D 0A 1A 0A.
inline constexpr std::uint64_t kMagic = 0x0A1A'0A0D'5053'4C89ULL;
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kMinReader = 1;

/// FileHeader::redacted.
enum Redacted : std::uint32_t {
  kRedactedPaths = 1U << 0,
  kRedactedHosts = 1U << 1,
};

/// First bytes of a pack. Zstandard frames follow, to the end of the file.
struct FileHeader {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t min_reader = kMinReader;
  std::uint64_t created_unix_ns = 0;
  std::uint64_t tail = 0;        ///< how many of the last calls of each file were asked for
  std::uint32_t redacted = 0;    ///< Redacted
  std::uint32_t unused[7] = {};
};
static_assert(sizeof(FileHeader) == 64 && std::is_trivially_copyable_v<FileHeader>);

/// MemberHeader::kind. Members of an unknown kind are passed over.
enum class MemberKind : std::uint32_t {
  kTrace = 1,  ///< a whole trace file
};

/// What a member starts with, at a multiple of kAlignment of the uncompressed frame. The name follows, then zeros up to a multiple of
/// kAlignment, then the content, then zeros up to such a multiple and kAlignment more.
struct MemberHeader {
  std::uint32_t magic = kMemberMagic;
  MemberKind kind = MemberKind::kTrace;
  std::uint64_t bytes = 0;       ///< of the content
  std::uint32_t name_bytes = 0;  ///< without a zero at the end
  std::uint32_t unused = 0;

  static constexpr std::uint32_t kMemberMagic = 0x3152'424D;  ///< "MBR1"
};
static_assert(sizeof(MemberHeader) == 24 && std::is_trivially_copyable_v<MemberHeader>);

inline constexpr std::uint64_t kAlignment = 64;
/// A frame holds whole members and at most this much, uncompressed.
inline constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{1} << 30;
/// A writer begins another frame behind this much, so that damage costs little and a reader needs little.
inline constexpr std::uint64_t kFrameBytes = std::uint64_t{32} << 20;

}  // namespace lockstep::pack
