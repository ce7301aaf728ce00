// One checksummed zstd frame after the other.
#include "pack/pack_writer.h"

#include <zstd.h>

#include <memory>

namespace lockstep {
namespace {

// Level 9 is within a few percent of the smallest for traces, and fast enough to be limited by reading them.
constexpr int kLevel = 9;

void pad(std::string& frame, std::uint64_t extra) {
  const std::uint64_t rest = frame.size() % pack::kAlignment;
  frame.append((rest == 0 ? 0 : pack::kAlignment - rest) + extra, '\0');
}

}  // namespace

PackWriter::PackWriter(const pack::FileHeader& header, std::function<bool(std::string_view)> write)
    : write_(std::move(write)) {
  good_ = this->write({reinterpret_cast<const char*>(&header), sizeof header});
}

bool PackWriter::write(std::string_view bytes) {
  bytes_written_ += bytes.size();
  return write_(bytes);
}

bool PackWriter::add(pack::MemberKind kind, std::string_view name, std::string_view content) {
  if (!good_ || content.size() + name.size() + 4 * pack::kAlignment > pack::kMaxFrameBytes) return false;
  if (frame_.size() + content.size() > pack::kFrameBytes && !flush_frame()) return false;
  const pack::MemberHeader header{
      .kind = kind, .bytes = content.size(), .name_bytes = static_cast<std::uint32_t>(name.size())};
  frame_.append(reinterpret_cast<const char*>(&header), sizeof header);
  frame_ += name;
  pad(frame_, 0);
  frame_ += content;
  pad(frame_, pack::kAlignment);
  return true;
}

bool PackWriter::flush_frame() {
  if (!good_ || frame_.empty()) return good_;
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  // The traces of the ranks are alike, farther apart than the usual window reaches.
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_enableLongDistanceMatching, 1);
  std::string packed(ZSTD_compressBound(frame_.size()), '\0');
  const std::size_t bytes =
      ZSTD_compress2(context.get(), packed.data(), packed.size(), frame_.data(), frame_.size());
  good_ = ZSTD_isError(bytes) == 0 && write(std::string_view(packed).substr(0, bytes));
  frame_.clear();
  return good_;
}

bool PackWriter::finish() { return flush_frame(); }

}  // namespace lockstep
