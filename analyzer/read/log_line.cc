// See the header.
#include "read/log_line.h"

#include <re2/re2.h>

namespace lockstep {
namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

/// Escape sequences of terminals (ECMA-48) out of the text.
void strip_escapes(std::string_view text, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      if (text[i] != '\r') out += text[i];
      continue;
    }
    if (i + 1 >= text.size()) break;
    const char next = text[++i];
    if (next == '[') {
      while (i + 1 < text.size() && (text[i + 1] < '@' || text[i + 1] > '~')) ++i;
      ++i;
    } else if (next == ']') {
      while (i + 1 < text.size() && text[i + 1] != '\x07' && text[i + 1] != '\x1b') ++i;
      ++i;
    }
  }
}

}  // namespace

LogLine clean_log_line(std::string_view line, std::string& buffer) {
  static const RE2 kRank(R"(^\s*(?:\[(?:rank|default|Rank )(\d{1,7})\][:,]? ?|(\d{1,7}): |\[\d+,(\d{1,7})\](?:<\w+>)?:? ?|\((?:rank|RANK)[ =](\d{1,7})\) ?))");
  static const RE2 kOther(R"(^(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)? |\([\w-]+ pid=\d+(?:, ip=[\d.]+)?\) |[\w.-]{1,80} \| ))");
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.find('\x1b') != std::string_view::npos || line.find('\r') != std::string_view::npos) {
    strip_escapes(line, buffer);
    line = buffer;
  }
  LogLine result{.text = line};
  constexpr int kMostPrefixes = 4;
  for (int i = 0; i < kMostPrefixes; ++i) {
    re2::StringPiece rest = piece(result.text);
    re2::StringPiece pa, pb, pc, pd;
    if (RE2::Consume(&rest, kRank, &pa, &pb, &pc, &pd)) {
      for (const re2::StringPiece& part : {pa, pb, pc, pd}) {
        int value = -1;
        if (part.empty() || !RE2::FullMatch(part, R"((\d+))", &value)) continue;
        if (!result.rank) result.rank = value;
        result.number = value;
      }
    } else if (!RE2::Consume(&rest, kOther)) {
      break;
    }
    result.text = {rest.data(), rest.size()};
  }
  return result;
}

}  // namespace lockstep
