// The bytes of an input one after another: a file, a pipe or standard input; gzip and zstd are unpacked on the way. Knows no format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

class ByteSource {
 public:
  /// Opens `path`; "-" is standard input. kUnreadable as MappedFile::open().
  static Result<std::unique_ptr<ByteSource>> open(const std::string& path);
  virtual ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// The first bytes, up to `most`, which read() will give again. Memory: as many.
  Result<std::string_view> peek(std::size_t most);
  /// Up to `size` bytes into `to`; 0 at the end. kMalformed where compressed data are damaged or end too early, kUnsupported
  /// where they expand beyond all reason. Blocks as a pipe does.
  Result<std::size_t> read(char* to, std::size_t size);

  /// A regular file that is not compressed: it can be mapped as well.
  bool is_plain_file() const { return is_plain_file_; }
  /// "gzip", "zstd"; empty where nothing is unpacked.
  std::string_view compression() const { return compression_; }
  /// Bytes taken from the file, and how many it has; 0 where nobody knows.
  std::uint64_t taken() const { return taken_; }
  std::uint64_t file_size() const { return file_size_; }

  /// More than this, and more than kMostExpansion times what was read: a bomb. gzip cannot expand so much.
  static constexpr std::uint64_t kHarmlessBytes = std::uint64_t{256} << 20;
  static constexpr std::uint64_t kMostExpansion = 4000;

 protected:
  ByteSource() = default;

 private:
  class Unpacker;
  class Gunzip;
  class Unzstd;
  Result<std::size_t> read_raw(char* to, std::size_t size);
  Result<std::size_t> read_unpacked(char* to, std::size_t size);

  std::string path_;
  int descriptor_ = -1;
  bool is_plain_file_ = false;
  std::string_view compression_;
  std::uint64_t taken_ = 0, file_size_ = 0, given_ = 0;
  std::string raw_;             // read and not unpacked yet, from raw_at_ on
  std::size_t raw_at_ = 0;
  bool raw_ended_ = false;
  std::string peeked_;          // given by peek(), from peeked_at_ on
  std::size_t peeked_at_ = 0;
  std::optional<Error> pending_;  // met by peek(); told when what stands before it was read
  std::unique_ptr<Unpacker> unpacker_;
};

}  // namespace lockstep
