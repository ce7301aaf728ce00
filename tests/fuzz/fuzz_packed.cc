// Fuzz target: any bytes as an input that may be compressed, read as a log would be: gzip, zstd or plain, whole and in pieces.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/byte_source.h"
#include "fuzz/fuzz_reader.h"
#include "read/log_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  static const int descriptor = ::memfd_create("input", MFD_CLOEXEC);  // a file of a disk takes most of the time
  expect(::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, data, size, 0) == static_cast<ssize_t>(size), "writing the input");
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  constexpr std::size_t kMostBytes = std::size_t{8} << 20;  // what goes beyond is a bomb, for others to hold
  std::string whole;
  {
    auto source = ByteSource::open(path);
    expect(source.has_value(), "opening");
    const auto head = (*source)->peek(1 + size % 100);
    char piece[4096];
    while (head && whole.size() < kMostBytes) {
      const auto got = (*source)->read(piece, 1 + (whole.size() + size) % sizeof piece);
      if (!got || *got == 0) break;
      whole.append(piece, *got);
    }
    if (head) expect(whole.substr(0, head->size()) == std::string(*head).substr(0, whole.size()), "what was peeked is read");
  }
  if (whole.size() >= kMostBytes) return 0;
  auto source = ByteSource::open(path);
  expect(source.has_value(), "opening again");
  const auto log = parse_log_stream("job.log", **source, {});
  expect(log.has_value(), "a log is always read");
  return 0;
}
