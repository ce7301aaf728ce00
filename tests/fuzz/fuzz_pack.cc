// Fuzz target: any bytes as a pack; and, where they are none, as what a pack's frame unpacks to, which no mutation of compressed
// bytes with a checksum would reach.
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/fuzz_reader.h"
#include "lockstep/pack_format.h"
#include "read/pack_file.h"
#include "read/packed_traces.h"

namespace lockstep {
namespace {

Result<std::size_t> read_one(const EvidenceFile& file, JobIntake& intake) {
  intake.set_native_lookup(false);
  const std::vector<std::optional<Error>> errors = read_packs({&file, 1}, intake);
  if (errors.front()) return *errors.front();
  return std::size_t{1};
}

std::string as_pack(std::string_view frame) {
  const pack::FileHeader header;
  std::string result(reinterpret_cast<const char*>(&header), sizeof header);
  std::string packed(ZSTD_compressBound(frame.size()), '\0');
  const std::size_t bytes = ZSTD_compress(packed.data(), packed.size(), frame.data(), frame.size(), 1);
  expect(ZSTD_isError(bytes) == 0, "compression");
  return result.append(packed, 0, bytes);
}

/// A small file may unpack to gigabytes, within the limits of the format: right for a user, too slow for a fuzzer.
bool is_large(std::string_view pack) {
  constexpr std::size_t kLarge = std::size_t{16} << 20;
  const std::string_view frames = pack.substr(std::min(pack.size(), sizeof(pack::FileHeader)));
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  std::vector<char> buffer(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{frames.data(), frames.size(), 0};
  for (std::size_t bytes = 0; bytes <= kLarge;) {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    if (ZSTD_isError(ZSTD_decompressStream(context.get(), &out, &in)) != 0) return false;
    if (in.pos == in.size && out.pos == 0) return false;
    bytes += out.pos;
  }
  return true;
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  std::string text(data, data + size);
  if (!looks_like_pack(text)) text = as_pack(text);
  if (is_large(text)) return 0;
  for (const bool twice : {false, true}) {
    const Result<Job> job = read_fuzz_input(read_one, text, twice);
    if (job) check_fuzz_tables(*job);
    if (!job) expect(!job.error().message.empty() && job.error().message.find('\n') == std::string::npos, "error message");
  }
  return 0;
}
