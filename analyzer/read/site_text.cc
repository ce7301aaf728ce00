// Splitting and writing stack frames; see the header.
#include "read/site_text.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace lockstep {
namespace {

/// Position of the last ':' that is not part of a "::"; npos if there is none.
std::size_t last_single_colon(std::string_view text) {
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] != ':') continue;
    if (i > 0 && text[i - 1] == ':') {
      --i;
      continue;
    }
    return i;
  }
  return std::string_view::npos;
}

std::optional<std::uint32_t> parse_line(std::string_view text) {
  std::uint32_t line = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), line);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return line;
}

bool is_path(std::string_view text) { return text.find_first_of("/\\") != std::string_view::npos; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Frame parse_colon_frame(std::string_view text) {
  Frame frame;
  bool has_line = false;
  if (const std::size_t colon = last_single_colon(text); colon != std::string_view::npos) {
    if (const auto line = parse_line(text.substr(colon + 1))) {
      frame.line = *line;
      text = text.substr(0, colon);
      has_line = true;
    }
  }
  const std::size_t colon = last_single_colon(text);
  // "C:\\x.py" is one file: what follows the ':' is a path, not a function.
  if (colon != std::string_view::npos && colon > 0 && !is_path(text.substr(colon + 1))) {
    frame.file = text.substr(0, colon);
    frame.function = text.substr(colon + 1);
  } else if (has_line || is_path(text)) {
    frame.file = text;
  } else {
    frame.function = text;
  }
  return frame;
}

Frame parse_frame(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return parse_colon_frame(text);
  Frame frame;
  frame.function = text.substr(0, at);
  text.remove_prefix(at + 1);
  if (const std::size_t colon = last_single_colon(text); colon != std::string_view::npos) {
    if (const auto line = parse_line(text.substr(colon + 1))) {
      frame.line = *line;
      text = text.substr(0, colon);
    }
  }
  frame.file = text;
  return frame;
}

CallSite parse_site(std::string_view value) {
  CallSite site;
  while (!value.empty()) {
    const std::size_t bar = value.find('|');
    const std::string_view word = value.substr(0, bar);
    if (!word.empty()) {
      Frame frame = parse_frame(word);
      frame.file = unescape_word(frame.file);
      frame.function = unescape_word(frame.function);
      site.frames.push_back(std::move(frame));
    }
    if (bar == std::string_view::npos) break;
    value.remove_prefix(bar + 1);
  }
  return site;
}

std::string site_text(const CallSite& site) {
  constexpr std::string_view kReserved = "|@;:[]";
  std::string text;
  for (const Frame& frame : site.frames) {
    if (!text.empty()) text += '|';
    const std::string file = escape_word(frame.file, kReserved);
    if (frame.function.empty()) {
      text += fmt::format("{}:{}", file, frame.line);
    } else if (frame.file.empty() && frame.line == 0) {
      text += escape_word(frame.function, "|@;:[]/\\");
    } else {
      text += fmt::format("{}@{}:{}", escape_word(frame.function, kReserved), file, frame.line);
    }
  }
  return text;
}

std::string escape_word(std::string_view text, std::string_view reserved) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7f || c == '%' || reserved.find(c) != std::string_view::npos) {
      result += fmt::format("%{:02X}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

std::string unescape_word(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low >= 0) {
      result += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace lockstep
