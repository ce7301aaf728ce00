// Frame by frame: each is checked as a whole before anything of it is used.
#include "read/pack_file.h"

#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace lockstep {
namespace {

using pack::kAlignment;

struct alignas(kAlignment) Line {
  char bytes[kAlignment];
};

constexpr std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Memory for a frame, grown as the stream gives bytes: a small file may claim a large frame.
class FrameBuffer {
 public:
  char* data() { return lines_.empty() ? nullptr : lines_.data()->bytes; }
  std::string_view view(std::size_t bytes) { return {data(), bytes}; }
  std::size_t capacity() const { return lines_.size() * kAlignment; }
  void grow() { lines_.resize(std::max<std::size_t>(lines_.size() * 2, 4096)); }

 private:
  std::vector<Line> lines_;
};

/// Uncompresses the frame at the beginning of `rest` and moves `rest` behind it. Says what is wrong; empty:
/// nothing.
std::string read_frame(std::string_view& rest, FrameBuffer& buffer, std::size_t& bytes) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  ZSTD_inBuffer in{rest.data(), rest.size(), 0};
  bytes = 0;
  for (;;) {
    if (bytes == buffer.capacity()) {
      if (bytes >= pack::kMaxFrameBytes) return "a frame is larger than packs may have";
      buffer.grow();
    }
    ZSTD_outBuffer out{buffer.data(), buffer.capacity(), bytes};
    const std::size_t left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0)
      return ZSTD_getErrorCode(left) == ZSTD_error_checksum_wrong ? "its checksum is wrong"
                                                                  : ZSTD_getErrorName(left);
    bytes = out.pos;
    if (left == 0) break;
    if (in.pos == in.size && out.pos < out.size) return "the file was cut";
  }
  rest.remove_prefix(in.pos);
  return "";
}

/// Says what is wrong; empty: nothing.
std::string read_members(std::string_view frame, Unpacked& unpacked,
                         const std::function<bool(const PackMember&)>& use, bool& wanted) {
  for (std::uint64_t at = 0; at < frame.size();) {
    pack::MemberHeader header;
    if (frame.size() - at < sizeof header) return "a member was cut";
    std::memcpy(&header, frame.data() + at, sizeof header);
    const std::uint64_t left = frame.size() - at;
    if (header.magic != pack::MemberHeader::kMemberMagic || header.name_bytes > left || header.bytes > left)
      return "a member does not begin where it should";
    const std::uint64_t content = round_up(sizeof header + header.name_bytes);
    const std::uint64_t next = content + round_up(header.bytes) + kAlignment;
    if (next > left) return "a member was cut";
    const std::string_view after = frame.substr(at + content + header.bytes, next - content - header.bytes);
    if (after.find_first_not_of('\0') != std::string_view::npos) return "a member has no end";
    wanted = use({.kind = header.kind,
                  .name = std::string(frame.substr(at + sizeof header, header.name_bytes)),
                  .content = frame.substr(at + content, header.bytes)});
    ++unpacked.members;
    if (!wanted) return "";
    at += next;
  }
  return "";
}

}  // namespace

bool looks_like_pack(std::string_view head) {
  std::uint64_t magic = 0;
  if (head.size() < sizeof magic) return false;
  std::memcpy(&magic, head.data(), sizeof magic);
  return magic == pack::kMagic;
}

Result<Unpacked> unpack(std::string_view contents, std::string_view path,
                        const std::function<bool(const PackMember&)>& use) {
  if (!looks_like_pack(contents))
    return Error{ErrorCode::kMalformed, fmt::format("{}: not a pack of Lockstep", path)};
  pack::FileHeader header;
  if (contents.size() < sizeof header)
    return Error{ErrorCode::kMalformed, fmt::format("{}: a pack that was cut in its header", path)};
  std::memcpy(&header, contents.data(), sizeof header);
  if (header.min_reader > pack::kVersion)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: a pack of version {}, for readers from {} on; this one knows {}", path,
                             header.version, header.min_reader, pack::kVersion)};
  Unpacked unpacked{.redacted = header.redacted, .tail = header.tail};
  FrameBuffer buffer;
  bool wanted = true;
  for (std::string_view rest = contents.substr(sizeof header); wanted && !rest.empty();) {
    const std::size_t offset = contents.size() - rest.size();
    std::size_t bytes = 0;
    std::string why = read_frame(rest, buffer, bytes);
    if (why.empty()) why = read_members(buffer.view(bytes), unpacked, use, wanted);
    if (why.empty()) continue;
    unpacked.damage =
        Error{ErrorCode::kMalformed,
              fmt::format("{}: damaged in the frame at offset {}: {}; {} members before it are whole", path,
                          offset, why, unpacked.members)};
    return unpacked;
  }
  return unpacked;
}

}  // namespace lockstep
