// See the header.
#include "base/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>

namespace lockstep {
namespace {

constexpr std::size_t kRawBytes = std::size_t{256} << 10;

Error system_error(const std::string& path, int error) {
  return {ErrorCode::kUnreadable, fmt::format("{}: {}", path, std::generic_category().message(error))};
}

}  // namespace

/// Takes from `in` and gives to `out`; both shrink by what was used. False: the data are damaged.
class ByteSource::Unpacker {
 public:
  Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  virtual ~Unpacker() = default;
  virtual bool unpack(std::string_view& in, char*& out, std::size_t& room) = 0;
  bool is_between() const { return is_between_; }  ///< the data may end here

 protected:
  bool is_between_ = false;
};

class ByteSource::Gunzip final : public Unpacker {
 public:
  Gunzip() { usable_ = ::inflateInit2(&stream_, MAX_WBITS + 16) == Z_OK; }
  ~Gunzip() override { ::inflateEnd(&stream_); }

  bool unpack(std::string_view& in, char*& out, std::size_t& room) override {
    if (!usable_) return false;
    // Compressors that write in pieces put one member behind another; tapes pad with zeros.
    if (is_between_) {
      while (!in.empty() && in.front() == '\0') in.remove_prefix(1);
      if (in.empty()) return true;
      if (::inflateReset(&stream_) != Z_OK) return false;
      is_between_ = false;
    }
    const auto limit = [](std::size_t size) { return static_cast<uInt>(std::min<std::size_t>(size, UINT_MAX)); };
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = limit(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = limit(room);
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    const auto given = static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_out) - out);
    in.remove_prefix(static_cast<std::size_t>(reinterpret_cast<const char*>(stream_.next_in) - in.data()));
    out += given;
    room -= given;
    is_between_ = result == Z_STREAM_END;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
  }

 private:
  z_stream stream_{};
  bool usable_ = false;
};

class ByteSource::Unzstd final : public Unpacker {
 public:
  bool unpack(std::string_view& in, char*& out, std::size_t& room) override {
    if (stream_ == nullptr) return false;
    if (is_between_ && in.empty()) return true;
    ZSTD_inBuffer source{in.data(), in.size(), 0};
    ZSTD_outBuffer target{out, room, 0};
    const std::size_t result = ::ZSTD_decompressStream(stream_.get(), &target, &source);
    in.remove_prefix(source.pos);
    out += target.pos;
    room -= target.pos;
    is_between_ = result == 0;
    return ::ZSTD_isError(result) == 0;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ::ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_{::ZSTD_createDStream()};  // its window is limited to 128 MiB
};

ByteSource::~ByteSource() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
}

Result<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path) {
  struct Opened final : ByteSource {};
  std::unique_ptr<ByteSource> source = std::make_unique<Opened>();
  source->path_ = path;
  source->descriptor_ = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (source->descriptor_ < 0) return system_error(path, errno);
  struct stat status {};
  if (::fstat(source->descriptor_, &status) != 0) return system_error(path, errno);
  if (S_ISDIR(status.st_mode)) return system_error(path, EISDIR);
  if (path != "-" && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode))) {
    return Error{ErrorCode::kUnreadable, path + ": is a device, not a file"};
  }
  if (S_ISREG(status.st_mode)) source->file_size_ = static_cast<std::uint64_t>(status.st_size);
  // What it is shows in its first bytes.
  source->raw_.resize(kRawBytes);
  std::size_t got = 0;
  while (got < kRawBytes && !source->raw_ended_) {
    const Result<std::size_t> more = source->read_raw(source->raw_.data() + got, kRawBytes - got);
    if (!more) return more.error();
    if (*more == 0) source->raw_ended_ = true;
    got += *more;
    constexpr std::size_t kTelling = 6;
    if (got >= kTelling) break;
  }
  source->raw_.resize(got);
  if (source->raw_.starts_with("\x1f\x8b")) {
    source->compression_ = "gzip";
    source->unpacker_ = std::make_unique<Gunzip>();
  } else if (source->raw_.starts_with("\x28\xb5\x2f\xfd")) {
    source->compression_ = "zstd";
    source->unpacker_ = std::make_unique<Unzstd>();
  }
  source->is_plain_file_ = source->unpacker_ == nullptr && path != "-" && S_ISREG(status.st_mode);
  return source;
}

Result<std::size_t> ByteSource::read_raw(char* to, std::size_t size) {
  while (true) {
    const ssize_t got = ::read(descriptor_, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path_, errno);
    taken_ += static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
  }
}

Result<std::size_t> ByteSource::read_unpacked(char* to, std::size_t size) {
  if (size == 0) return std::size_t{0};
  if (unpacker_ == nullptr) {
    if (raw_at_ < raw_.size()) {
      const std::size_t part = std::min(size, raw_.size() - raw_at_);
      std::memcpy(to, raw_.data() + raw_at_, part);
      raw_at_ += part;
      return part;
    }
    return raw_ended_ ? Result<std::size_t>(std::size_t{0}) : read_raw(to, size);
  }
  char* out = to;
  std::size_t room = size;
  while (out == to) {
    if (raw_at_ == raw_.size() && !raw_ended_) {
      raw_.resize(kRawBytes);
      const Result<std::size_t> more = read_raw(raw_.data(), raw_.size());
      if (!more) return more.error();
      raw_.resize(*more);
      raw_at_ = 0;
      raw_ended_ = *more == 0;
    }
    std::string_view in = std::string_view(raw_).substr(raw_at_);
    const std::size_t before = in.size();
    if (!unpacker_->unpack(in, out, room)) {
      return Error{ErrorCode::kMalformed, fmt::format("{}: its {} data are damaged near byte {}", path_, compression_, taken_ - in.size())};
    }
    raw_at_ += before - in.size();
    if (out != to) break;
    if (raw_ended_ && raw_at_ == raw_.size()) {
      if (unpacker_->is_between()) break;
      return Error{ErrorCode::kMalformed, fmt::format("{}: its {} data end too early, at byte {}", path_, compression_, taken_)};
    }
  }
  const auto got = static_cast<std::size_t>(out - to);
  given_ += got;
  if (given_ > kHarmlessBytes && given_ / kMostExpansion > taken_) {
    return Error{ErrorCode::kUnsupported, fmt::format("{}: {} bytes of it unpack to {} and more; not read any further", path_, taken_, given_)};
  }
  return got;
}

Result<std::size_t> ByteSource::read(char* to, std::size_t size) {
  if (peeked_at_ == peeked_.size()) return pending_ ? Result<std::size_t>(*pending_) : read_unpacked(to, size);
  const std::size_t part = std::min(size, peeked_.size() - peeked_at_);
  std::memcpy(to, peeked_.data() + peeked_at_, part);
  peeked_at_ += part;
  return part;
}

Result<std::string_view> ByteSource::peek(std::size_t most) {
  while (peeked_.size() < most) {
    const std::size_t before = peeked_.size();
    peeked_.resize(most);
    const Result<std::size_t> got = read_unpacked(peeked_.data() + before, most - before);
    peeked_.resize(before + (got ? *got : 0));
    if (!got && before == 0) return got.error();
    if (!got) pending_ = got.error();
    if (!got || *got == 0) break;
  }
  return std::string_view(peeked_);
}

}  // namespace lockstep
