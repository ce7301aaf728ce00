// Lays text out on a terminal: aligned columns and wrapped paragraphs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Rows of cells; missing cells are empty.
using Cells = std::vector<std::string>;

/// One line per row, columns padded to their widest cell and two spaces apart; a column that is empty in
/// every row is left out, and so are spaces at the end. Where a line would exceed `max_width`, cells of
/// column `flexible` are cut first, then the line. The cells must be printable().
std::vector<std::string> align_columns(std::span<const Cells> rows, std::size_t max_width,
                                       std::size_t flexible);

/// Columns that align_columns leaves for column `flexible` before it has to cut.
std::size_t flexible_room(std::span<const Cells> rows, std::size_t max_width, std::size_t flexible);

/// Lines of at most `width` (>= 1) columns, broken at spaces; a word that is longer is broken anywhere. Never
/// empty.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

}  // namespace lockstep
