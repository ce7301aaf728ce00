// Spelled as libshim/config.cc reads it.
#include "cli/ring_size.h"

#include <algorithm>
#include <charconv>

#include "lockstep/trace_format.h"

namespace lockstep {

std::optional<std::uint64_t> parse_ring_size(std::string_view text) {
  std::uint64_t bytes = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, bytes);
  if (parsed.ec != std::errc{} || bytes > kLargestRingBytes) return std::nullopt;
  std::string_view unit(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  constexpr std::string_view kUnits = "kKmMgG";
  if (!unit.empty()) {
    if (const std::size_t at = kUnits.find(unit[0]); at != std::string_view::npos) {
      const auto shift = static_cast<unsigned>(10 * (at / 2 + 1));
      if (bytes > (kLargestRingBytes >> shift)) return std::nullopt;
      bytes <<= shift;
      unit.remove_prefix(1);
    }
  }
  if (unit.starts_with('i')) unit.remove_prefix(1);
  if (unit == "B" || unit == "b") unit = "";
  if (!unit.empty() || bytes < kSmallestRingBytes || bytes > kLargestRingBytes) return std::nullopt;
  return bytes;
}

std::uint64_t trace_file_bytes(std::uint64_t ring_bytes) {
  // As libshim/trace_file.cc lays a file out.
  const std::uint64_t entries = std::clamp<std::uint64_t>(ring_bytes / trace::kBlockBytes, 32, 512);
  const std::uint64_t side = std::clamp<std::uint64_t>(ring_bytes / 16, 64 << 10, 64 << 20);
  return trace::kHeaderBytes + entries * sizeof(trace::CommEntry) + side + ring_bytes;
}

}  // namespace lockstep
