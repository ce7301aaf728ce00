// Lays text out on a terminal.
#include "report/columns.h"

#include <algorithm>
#include <utility>

#include "report/printable.h"

namespace lockstep {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowest = 12;  // a flexible column is not cut below this: "_function..."

std::vector<std::size_t> column_widths(std::span<const Cells> rows) {
  std::vector<std::size_t> widths;
  for (const Cells& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  return widths;
}

std::size_t line_width(std::span<const std::size_t> widths) {
  std::size_t total = 0;
  for (const std::size_t width : widths)
    if (width != 0) total += width + (total == 0 ? 0 : kGap);
  return total;
}

// The beginning of a word that is wider than a line: whole code points only.
std::string_view fitting_part(std::string_view word, std::size_t width) {
  std::size_t bytes = 1;
  for (std::size_t next = 1; next <= word.size(); ++next) {
    const bool inside = next < word.size() && (static_cast<unsigned char>(word[next]) & 0xC0U) == 0x80;
    if (inside) continue;
    if (bytes > 1 && display_width(word.substr(0, next)) > width) break;
    bytes = next;
    if (display_width(word.substr(0, next)) >= width) break;
  }
  return word.substr(0, bytes);
}

}  // namespace

std::size_t flexible_room(std::span<const Cells> rows, std::size_t max_width, std::size_t flexible) {
  std::vector<std::size_t> widths = column_widths(rows);
  if (flexible < widths.size()) widths[flexible] = 0;
  return max_width - std::min(max_width, line_width(widths) + kGap);
}

std::vector<std::string> align_columns(std::span<const Cells> rows, std::size_t max_width,
                                       std::size_t flexible) {
  std::vector<std::size_t> widths = column_widths(rows);
  const std::size_t total = line_width(widths);
  if (total > max_width && flexible < widths.size() && widths[flexible] > kNarrowest) {
    const std::size_t excess = total - max_width;
    widths[flexible] = std::max(kNarrowest, widths[flexible] - std::min(widths[flexible], excess));
  }
  std::vector<std::string> lines;
  lines.reserve(rows.size());
  for (const Cells& row : rows) {
    std::string line;
    std::size_t column = 0;  // where the next cell begins
    std::size_t used = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string cell = cut_to_width(row[i], widths[i]);
      if (!cell.empty()) {
        line.append(column - used, ' ');
        line += cell;
        used = column + display_width(cell);
      }
      column += widths[i] + kGap;
    }
    lines.push_back(cut_to_width(line, max_width));
  }
  return lines;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  const auto finish_line = [&] {
    if (!line.empty()) lines.push_back(std::exchange(line, {}));
  };
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) finish_line();
    while (display_width(word) > width) {
      const std::string_view part = fitting_part(word, width);
      lines.emplace_back(part);
      word.remove_prefix(part.size());
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  finish_line();
  if (lines.empty()) lines.emplace_back();
  return lines;
}

}  // namespace lockstep
