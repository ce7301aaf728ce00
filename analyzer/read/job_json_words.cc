// Small parsers; see the header.
#include "read/job_json_words.h"

#include <fmt/format.h>

#include <charconv>

namespace lockstep {

std::optional<std::int32_t> rank_from_key(std::string_view key) {
  std::int32_t rank = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), rank);
  if (key.empty() || error != std::errc{} || end != key.data() + key.size() || rank < 0) return std::nullopt;
  return rank;
}

std::optional<ProgramEnd> parse_end(std::string_view text) {
  if (text == "running") return ProgramEnd{EndKind::kRunning, 0};
  if (text == "unknown") return ProgramEnd{};
  const bool exited = text.starts_with("exited");
  if (!exited && !text.starts_with("killed")) return std::nullopt;
  ProgramEnd end{exited ? EndKind::kExited : EndKind::kKilled, exited ? ProgramEnd::kStatusUnknown : 9};
  text.remove_prefix(6);
  if (text.empty()) return end;
  const auto [last, error] = std::from_chars(text.data() + 1, text.data() + text.size(), end.status);
  if (text.front() != ' ' || error != std::errc{} || last != text.data() + text.size()) return std::nullopt;
  return end;
}

std::string job_json_end(const ProgramEnd& end) {
  switch (end.kind) {
    case EndKind::kUnknown:
      return "unknown";
    case EndKind::kExited:
      return end.status == ProgramEnd::kStatusUnknown ? "exited" : fmt::format("exited {}", end.status);
    case EndKind::kKilled:
      return fmt::format("killed {}", end.status);
    case EndKind::kRunning:
      return "running";
  }
  return "unknown";
}

Library library_from_name(std::string_view name) {
  for (const Library library : {Library::kNccl, Library::kMpi, Library::kTorch}) {
    if (name == library_name(library)) return library;
  }
  return Library::kUnknown;
}

}  // namespace lockstep
