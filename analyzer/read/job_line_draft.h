// An operation of a Job JSON line while it is being read, and the small parsers of its words. For job_line*.cc only.
#pragma once

#include <charconv>

#include "read/job_line.h"
#include "read/native_names.h"

namespace lockstep {

struct JobLineReader::Draft {
  std::vector<std::string_view> words{};  ///< first all words of the line, then those that are no keys
  std::size_t next = 0;                   ///< first word that has not been read
  std::string_view text{};
  Operation operation{};
  OperationExtra rare{};
  std::string_view group{};               ///< group=NAME; empty = named by position
  bool has_rare = false;  ///< `rare` holds more than what shared_extra() covers
  std::string label{};
  std::string native_name{};
  std::vector<std::int32_t> excluded{};   ///< shrink: who is left out
  bool blocking = false;  ///< flags=blocking: stream and handle do not make it nonblocking

  std::string_view peek() const { return next < words.size() ? words[next] : std::string_view{}; }
  std::string_view take() { return next < words.size() ? words[next++] : std::string_view{}; }
};

inline bool parse_unsigned(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc{} && end == text.data() + text.size();
}

/// A job rank.
inline bool parse_rank(std::string_view text, std::int32_t& rank) {
  std::uint64_t value = 0;
  if (!parse_unsigned(text, value) || value > 0x7fffffff) return false;
  rank = static_cast<std::int32_t>(value);
  return true;
}

/// A job rank, any rank, or "?": not known.
inline bool parse_peer(std::string_view text, std::int32_t& peer) {
  if (text == "any" || text == "*" || text == "ANY_SOURCE" || text == "MPI_ANY_SOURCE") {
    peer = kAnyPeer;
    return true;
  }
  if (text == "?") {
    peer = kNoPeer;
    return true;
  }
  return parse_rank(text, peer);
}

/// A known element type, or anything of the form name[...].
inline bool looks_like_type(std::string_view word) {
  if (word.ends_with(']') && word.find('[') != std::string_view::npos) return true;
  return !word.empty() && !datatype_from_native_name(word).empty();
}

}  // namespace lockstep
