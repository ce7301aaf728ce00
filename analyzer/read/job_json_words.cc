// Small parsers; see the header.
#include "model/gloo.h"
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

std::vector<std::int32_t> ranks_from_text(std::string_view text) {
  constexpr std::int32_t kMost = 1 << 20;
  std::vector<std::int32_t> ranks;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = rank_from_key(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : rank_from_key(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kMost - static_cast<std::int32_t>(ranks.size())) return {};
    for (std::int32_t rank = *first; rank <= *last; ++rank) ranks.push_back(rank);
    if (comma == std::string_view::npos) return ranks;
    text.remove_prefix(comma + 1);
  }
}

std::optional<ProgramEnd> parse_end(std::string_view text) {
  if (text == "running" || text == "hung" || text == "blocked" || text == "alive") return ProgramEnd{EndKind::kRunning, 0};
  if (text == "unknown") return ProgramEnd{};
  if (text == "finished" || text == "ended" || text == "done") return ProgramEnd{EndKind::kExited, ProgramEnd::kStatusUnknown};
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

std::optional<int> parse_library_version(std::string_view text) {
  int parts[3] = {};
  std::size_t count = 0;
  while (true) {
    const std::size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), parts[count]);
    if (part.empty() || error != std::errc{} || end != part.data() + part.size() || parts[count] < 0) return std::nullopt;
    ++count;
    if (dot == std::string_view::npos) break;
    if (count == 3) return std::nullopt;
    text.remove_prefix(dot + 1);
  }
  if (count == 1) return parts[0];
  const auto [major, minor, patch] = parts;
  if (major > 1000 || minor > 99 || patch > 99) return std::nullopt;
  // nccl.h, NCCL_VERSION(): five digits from 2.9 on.
  return major <= 2 && minor <= 8 ? major * 1000 + minor * 100 + patch : major * 10000 + minor * 100 + patch;
}

std::string job_json_library_version(int code) {
  const int major = code >= 10000 ? code / 10000 : code / 1000;
  const int rest = code >= 10000 ? code % 10000 : code % 1000;
  return fmt::format("{}.{}.{}", major, rest / 100, rest % 100);
}

Library library_from_name(std::string_view name) {
  for (const Library library : {Library::kNccl, Library::kMpi, Library::kTorch, kGlooLibrary}) {
    if (name == library_name(library)) return library;
  }
  if (name == "rccl") return Library::kNccl;
  if (name == "pytorch" || name == "torch.distributed") return Library::kTorch;
  return Library::kUnknown;
}

}  // namespace lockstep
