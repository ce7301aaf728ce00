// The named parts of a line that a grammar matched: text, numbers and lists of ranks.
#include <algorithm>
#include <charconv>

#include "read/log_grammars.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostRanks = 65536;

}  // namespace

const re2::StringPiece* LogFields::find(const char* name) const {
  const auto at = names_.find(name);
  if (at == names_.end() || static_cast<std::size_t>(at->second) >= groups_.size()) return nullptr;
  const re2::StringPiece& group = groups_[static_cast<std::size_t>(at->second)];
  return group.data() == nullptr ? nullptr : &group;
}

std::string LogFields::text(const char* name) const {
  constexpr std::size_t kLongest = 400;
  const re2::StringPiece* const group = find(name);
  return group == nullptr ? std::string{} : std::string(group->data(), std::min(group->size(), kLongest));
}

std::optional<std::int64_t> LogFields::number(const char* name) const {
  const re2::StringPiece* const group = find(name);
  std::int64_t value = 0;
  if (group == nullptr || std::from_chars(group->data(), group->data() + group->size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

std::optional<std::int32_t> LogFields::rank(const char* name) const {
  const auto value = number(name);
  if (!value || *value < 0 || *value > 0x7ffffffe) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

std::vector<std::int32_t> LogFields::ranks(const char* name) const {
  const re2::StringPiece* const group = find(name);
  return group == nullptr ? std::vector<std::int32_t>{} : ranks_in({group->data(), group->size()});
}

std::vector<std::int32_t> ranks_in(std::string_view text) {
  std::vector<std::int32_t> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool is_range = false;
  while (at < end && ranks.size() < kMostRanks) {
    std::int32_t value = 0;
    const auto [next, problem] = std::from_chars(at, end, value);
    if (problem != std::errc{} || value < 0) {
      is_range = *at == '-' || (is_range && *at == ' ');
      ++at;
      continue;
    }
    if (is_range && !ranks.empty()) {
      for (std::int32_t between = ranks.back() + 1; between < value && ranks.size() < kMostRanks; ++between) ranks.push_back(between);
    }
    is_range = false;
    ranks.push_back(value);
    at = next;
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace lockstep
