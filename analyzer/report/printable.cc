// Makes strings that came from inputs safe to print.
#include "report/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace lockstep {
namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;  // 0 = the text does not begin with valid UTF-8
};

// Decodes the first code point; refuses overlong forms, surrogates and values past U+10FFFF (RFC 3629).
CodePoint first_code_point(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  std::size_t length = 0;
  char32_t value = 0;
  char32_t smallest = 0;
  if ((lead & 0xE0U) == 0xC0) {
    length = 2, value = lead & 0x1FU, smallest = 0x80;
  } else if ((lead & 0xF0U) == 0xE0) {
    length = 3, value = lead & 0x0FU, smallest = 0x800;
  } else if ((lead & 0xF8U) == 0xF0) {
    length = 4, value = lead & 0x07U, smallest = 0x10000;
  }
  if (length == 0 || text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3FU);
  }
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < smallest || surrogate || value > 0x10FFFF) return {};
  return {value, length};
}

bool in(char32_t value, char32_t first, char32_t last) { return value >= first && value <= last; }

// C1, marks and overrides of direction, line separators, zero-width and tag characters.
bool is_hidden(char32_t value) {
  return in(value, 0x80, 0x9F) || value == 0xAD || value == 0x61C || value == 0x180E ||
         in(value, 0x200B, 0x200F) || in(value, 0x2028, 0x202E) || in(value, 0x2060, 0x206F) ||
         value == 0xFEFF || in(value, 0xFFF9, 0xFFFB) || in(value, 0xE0000, 0xE007F);
}

bool is_wide(char32_t value) {
  return in(value, 0x1100, 0x115F) || in(value, 0x2E80, 0xA4CF) || in(value, 0xAC00, 0xD7A3) ||
         in(value, 0xF900, 0xFAFF) || in(value, 0xFE30, 0xFE6F) || in(value, 0xFF00, 0xFF60) ||
         in(value, 0xFFE0, 0xFFE6) || in(value, 0x1F300, 0x1FAFF) || in(value, 0x20000, 0x3FFFD);
}

void append_escaped_byte(std::string& out, unsigned char byte) {
  switch (byte) {
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    const std::size_t bytes = point.bytes == 0 ? 1 : point.bytes;
    if (point.bytes == 0 || point.value < 0x20 || point.value == 0x7F) {
      append_escaped_byte(out, static_cast<unsigned char>(text[0]));
    } else if (is_hidden(point.value)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(point.value));
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    width += is_wide(point.value) ? 2U : 1U;
    text.remove_prefix(point.bytes == 0 ? 1 : point.bytes);
  }
  return width;
}

std::string cut_to_width(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  constexpr std::string_view kCut = "...";
  const std::size_t room = width > kCut.size() ? width - kCut.size() : 0;
  std::size_t used = 0;
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const CodePoint point = first_code_point(text.substr(bytes));
    const std::size_t columns = is_wide(point.value) ? 2U : 1U;
    if (used + columns > room) break;
    used += columns;
    bytes += point.bytes == 0 ? 1 : point.bytes;
  }
  return std::string(text.substr(0, bytes)) + std::string(kCut.substr(0, width));
}

}  // namespace lockstep
