// See the header.
#include "read/log_line.h"

#include <re2/re2.h>

#include <charconv>

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
  static const RE2 kRank(R"(^\s*(?:\[(?:rank|default|Rank )(\d{1,7})\][:,]? ?|(\d{1,7}): |\[(?:\d+,)?(\d{1,7})\]<\w+>:? ?|\[\d+,(\d{1,7})\]:? ?|\((?:rank|RANK)[ =](\d{1,7})\) ?))");
  // ISO 8601 with or without brackets, and what containerd puts behind it.
  static const RE2 kTime(R"(^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d| UTC)?\]? (?:std(?:out|err) [FP] )?)");
  static const RE2 kSyslog(R"(^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)? )([A-Za-z0-9][\w.-]{0,252}) (kernel|[A-Za-z][\w./-]{0,40}\[\d+\]): )");
  static const RE2 kRay(R"(^\([\w.-]+ pid=(\d{1,10})(?:, ip=([\d.]{7,15}))?\) )");
  static const RE2 kPod(R"(^(?:\[pod/([a-z0-9][a-z0-9.-]{0,252})/[\w.-]{1,80}\] ?|([\w.-]{1,80}) +\| |([\w-]{1,80}\.\d+) -- |([\w.-]{1,80}) \[std(?:out|err)\] ))");
  // Accelerate's test command.
  static const RE2 kStream(R"(^std(?:out|err): )");
  // What was quoted in a mail or an issue.
  static const RE2 kQuote(R"(^> ?)");
  // pdsh and DeepSpeed's launcher; only before what begins a line of its own, since "error: " looks alike.
  static const RE2 kHost(R"(^([A-Za-z][\w.-]*\d[\w.-]*): [\[(])");
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.find('\x1b') != std::string_view::npos || line.find('\r') != std::string_view::npos) {
    strip_escapes(line, buffer);
    line = buffer;
  }
  LogLine result{.text = line};
  const auto view = [](const re2::StringPiece& part) { return std::string_view(part.data(), part.size()); };
  constexpr int kMostPrefixes = 6;
  for (int i = 0; i < kMostPrefixes; ++i) {
    re2::StringPiece rest = piece(result.text);
    re2::StringPiece pa, pb, pc, pd, pe;
    if (RE2::Consume(&rest, kRank, &pa, &pb, &pc, &pd, &pe)) {
      for (const re2::StringPiece& part : {pa, pb, pc, pd, pe}) {
        int value = -1;
        if (part.empty() || std::from_chars(part.data(), part.data() + part.size(), value).ec != std::errc{}) continue;
        if (!result.rank) result.rank = value;
        result.number = value;
      }
    } else if (RE2::Consume(&rest, kSyslog, &pa, &pb)) {
      result.host = view(pa);
      result.from_kernel = view(pb) == "kernel";
    } else if (RE2::Consume(&rest, kRay, &pa, &pb)) {
      std::from_chars(pa.data(), pa.data() + pa.size(), result.pid);
      if (result.host.empty()) result.host = view(pb);
    } else if (RE2::Consume(&rest, kPod, &pa, &pb, &pc, &pd)) {
      for (const re2::StringPiece& part : {pa, pb, pc}) {
        if (!part.empty()) result.pod = view(part);
      }
      if (!pd.empty() && result.host.empty()) result.host = view(pd);
    } else if (i == 0 && RE2::Consume(&rest, kQuote)) {
      result.text = {rest.data(), rest.size()};
      continue;
    } else if (RE2::Consume(&rest, kStream)) {
    } else if (RE2::PartialMatch(rest, kHost, &pa)) {
      result.host = view(pa);
      rest.remove_prefix(pa.size() + 2);
    } else if (!RE2::Consume(&rest, kTime)) {
      break;
    }
    result.has_prefix = true;
    result.text = {rest.data(), rest.size()};
  }
  return result;
}

}  // namespace lockstep
