// The bytes of an input: a regular file, mapped or read, or what a pipe or standard input gave. Knows no format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/mapping_guard.h"
#include "base/result.h"

namespace lockstep {

/// Owns the bytes of one input for as long as it lives.
class MappedFile {
 public:
  /// So many zero bytes can be read past the end of contents(); parsers that read in blocks rely on it.
  static constexpr std::size_t kPaddingBytes = 64;
  /// A pipe cannot be mapped: what it gives lies in memory, so there is a limit to it.
  static constexpr std::size_t kMaxPipeBytes = std::size_t{4} << 30;
  /// Smaller files are read instead: faster, and safe from a writer that shortens the file meanwhile.
  static constexpr std::size_t kMaxReadBytes = std::size_t{16} << 20;

  /// Opens `path`; "-" is standard input. kUnreadable with the system's reason when it cannot be opened or read, or is
  /// a directory or a device; kUnsupported when a pipe gives more than kMaxPipeBytes. Blocks as the pipe does.
  /// Regular files of more than `most_read` bytes are mapped; 0 for files whose writer never shortens them. Where somebody
  /// does nevertheless, what is gone reads as zeros, and was_shortened() says so.
  static Result<MappedFile> open(const std::string& path, std::size_t most_read = kMaxReadBytes);

  /// Bytes that are in memory already, as if read from a file.
  static MappedFile of(std::string contents);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::string_view contents() const;

  /// A mapped file has become shorter than contents(): they are not what was in it, and it is to be read again.
  bool was_shortened() const;

 private:
  MappedFile() = default;
  static Result<MappedFile> map(const std::string& path, int descriptor, std::size_t size);
  static Result<MappedFile> read(const std::string& path, int descriptor, std::size_t expected);

  std::string buffer_;               // used when nothing is mapped; ends in kPaddingBytes zeros
  const char* mapping_ = nullptr;    // start of the mapping
  std::size_t size_ = 0;             // of the contents
  std::size_t mapped_bytes_ = 0;     // of the mapping with its padding
  MappingGuard guard_;
  std::string path_;                 // of a mapped file, and which file that was
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

}  // namespace lockstep
