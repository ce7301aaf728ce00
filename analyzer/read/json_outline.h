// A look at the beginning of a JSON text, to recognise its format: the keys of its outermost object.
#pragma once

#include <string_view>
#include <vector>

namespace lockstep {

/// One key of an object and the first character of its value ('{', '[', '"', a digit ...; 0 = the text ends there).
struct OutlineKey {
  std::string_view name{};  ///< as written, escapes unread
  char value = 0;
};

/// The keys of the object that `text` begins with, after white space and a byte order mark; as far as `text` goes, and no
/// further than `text` is JSON. Empty for anything else. Reads `text` once.
std::vector<OutlineKey> outline_keys(std::string_view text);

/// `text` without a byte order mark and white space at its beginning.
std::string_view skip_mark_and_space(std::string_view text);

}  // namespace lockstep
