// A scan that knows strings and depth, nothing more; see the header.
#include "read/json_outline.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

/// Past the closing quote of the string that begins at `at`; the end of the text where it does not close.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

}  // namespace

std::string_view skip_mark_and_space(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
}

std::vector<OutlineKey> outline_keys(std::string_view text) {
  std::vector<OutlineKey> keys;
  text = skip_mark_and_space(text);
  if (!text.starts_with('{')) return keys;
  constexpr std::size_t kMostKeys = 1000;
  std::size_t depth = 1;
  bool expects_key = true;
  for (std::size_t i = 1; i < text.size() && depth > 0 && keys.size() < kMostKeys;) {
    const char c = text[i];
    if (c == '"') {
      const std::size_t end = end_of_string(text, i);
      if (depth == 1 && expects_key) {
        const std::string_view name = text.substr(i + 1, end > i + 1 ? end - i - 2 : 0);
        const std::size_t colon = text.find_first_not_of(kSpace, end);
        if (colon == std::string_view::npos || text[colon] != ':') return keys;
        const std::size_t value = text.find_first_not_of(kSpace, colon + 1);
        keys.push_back({name, value == std::string_view::npos ? '\0' : text[value]});
        expects_key = false;
        i = colon + 1;
      } else {
        i = end;
      }
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == ',' && depth == 1) expects_key = true;
    ++i;
  }
  return keys;
}

}  // namespace lockstep
