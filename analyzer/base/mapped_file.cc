// Opening, mapping and reading; see the header for what is mapped and what is read.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

Error system_error(const std::string& path, int error) {
  return {ErrorCode::kUnreadable, fmt::format("{}: {}", path, std::generic_category().message(error))};
}

/// Closes on every way out.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ > STDIN_FILENO) ::close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

}  // namespace

MappedFile::MappedFile(MappedFile&& other) noexcept
    : buffer_(std::move(other.buffer_)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      guard_(std::move(other.guard_)),
      path_(std::move(other.path_)),
      device_(other.device_),
      inode_(other.inode_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(buffer_, other.buffer_);
  std::swap(mapping_, other.mapping_);
  std::swap(size_, other.size_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(guard_, other.guard_);
  std::swap(path_, other.path_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

MappedFile::~MappedFile() {
  guard_ = {};
  if (mapping_ != nullptr) ::munmap(const_cast<char*>(mapping_), mapped_bytes_);
}

std::string_view MappedFile::contents() const {
  return {mapping_ != nullptr ? mapping_ : buffer_.data(), size_};
}

bool MappedFile::was_shortened() const {
  if (mapping_ == nullptr) return false;
  if (guard_.was_hit()) return true;
  // The rest of a page behind the end of a file reads as zeros without a fault.
  struct stat now {};
  return ::stat(path_.c_str(), &now) == 0 && now.st_dev == device_ && now.st_ino == inode_ &&
         static_cast<std::size_t>(now.st_size) < size_;
}

Result<MappedFile> MappedFile::open(const std::string& path, std::size_t most_read) {
  const Descriptor descriptor(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.get() < 0) return system_error(path, errno);
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) return system_error(path, errno);
  if (S_ISDIR(status.st_mode)) return system_error(path, EISDIR);
  if (path != "-" && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode))) {
    return Error{ErrorCode::kUnreadable, path + ": is a device, not a file"};
  }
  const auto size = S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) : 0;
  // Standard input may be a file with an offset: the rest of it is the input, and only reading gives that.
  if (path == "-" || size <= most_read || size == 0) return read(path, descriptor.get(), size);
  Result<MappedFile> file = map(path, descriptor.get(), size);
  if (file) {
    file->path_ = path;
    file->device_ = status.st_dev;
    file->inode_ = status.st_ino;
  }
  return file;
}

MappedFile MappedFile::of(std::string contents) {
  MappedFile file;
  file.size_ = contents.size();
  file.buffer_ = std::move(contents);
  file.buffer_.resize(file.size_ + kPaddingBytes);
  return file;
}

Result<MappedFile> MappedFile::map(const std::string& path, int descriptor, std::size_t size) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  static_assert(kPaddingBytes <= 4096);
  // Reserve one page more than the file needs and put the file over the start: the padding is that zero page.
  const std::size_t reserved = (size + page - 1) / page * page + page;
  void* base = ::mmap(nullptr, reserved, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return system_error(path, errno);
  MappedFile file;
  file.mapping_ = static_cast<const char*>(base);
  file.mapped_bytes_ = reserved;
  if (::mmap(base, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
    return system_error(path, errno);
  }
  ::madvise(base, size, MADV_SEQUENTIAL);
  file.size_ = size;
  file.guard_ = MappingGuard(base, size);
  return file;
}

Result<MappedFile> MappedFile::read(const std::string& path, int descriptor, std::size_t expected) {
  constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
  MappedFile file;
  file.buffer_.resize(expected + kChunkBytes + kPaddingBytes);
  while (true) {
    if (file.buffer_.size() - file.size_ < kChunkBytes + kPaddingBytes) {
      if (file.size_ >= kMaxPipeBytes) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: gave more than {} bytes through a pipe; pass it as a file", path, kMaxPipeBytes)};
      }
      file.buffer_.resize(file.buffer_.size() * 2);
    }
    const ssize_t got = ::read(descriptor, file.buffer_.data() + file.size_,
                               file.buffer_.size() - file.size_ - kPaddingBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, errno);
    if (got == 0) break;
    file.size_ += static_cast<std::size_t>(got);
  }
  file.buffer_.resize(file.size_);                  // cut what an earlier, longer size left behind,
  file.buffer_.resize(file.size_ + kPaddingBytes);  // then pad with zeros
  return file;
}

}  // namespace lockstep
