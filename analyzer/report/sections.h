// The labelled parts of a text report, and how they are made to fit one screen: layout only, no meaning.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/operation_rows.h"

namespace lockstep {

class Sections {
 public:
  /// Lines of at most `width` columns; not more than `max_lines` entries of a section are kept at all.
  Sections(std::size_t width, std::size_t max_lines, bool colour)
      : width_(width), max_lines_(max_lines), colour_(colour) {}

  static constexpr std::size_t kRowIndent = 2;
  /// Rows without a label, indented; `ranks_omitted` others were left out by who made the report.
  void add_rows(std::vector<OperationRow> rows, std::size_t minimum, std::size_t ranks_omitted);
  /// One paragraph; where it is cut its last line ends in "...".
  void add_paragraph(std::string label, std::string_view text, std::size_t minimum);
  /// A list. Each entry takes at most `lines_each` lines; entries that do not fit are counted.
  void add_entries(std::string label, const std::vector<std::string>& texts, std::size_t minimum,
                   std::size_t lines_each);

  /// Columns beside the labels.
  std::size_t body_width() const;

  /// Drops entries (lines of a paragraph) from the end of sections, in the order of `dispensable` labels and
  /// down to their minimum, until `lines` is kept.
  void fit(std::size_t lines, std::span<const std::string_view> dispensable);
  std::string text() const;

 private:
  struct Section {
    std::string label{};
    std::vector<std::vector<std::string>> entries{};  ///< each one or more finished lines
    std::size_t minimum = 0;
    bool is_prose = false;               ///< entries are the lines of one paragraph
    std::vector<std::size_t> weights{};  ///< what each entry counts for when it is dropped; empty = 1 each
    std::size_t omitted = 0;             ///< weight of what was dropped before
    std::size_t shown = 0;

    bool is_left_out() const;
    bool is_cut() const { return shown < entries.size() || omitted != 0; }
    std::size_t line_count() const;
    std::string rest_text() const;
  };

  std::size_t line_count() const;
  void add(Section section);
  void write(const Section& section, std::string& out) const;

  std::size_t width_;
  std::size_t max_lines_;
  bool colour_;
  std::vector<Section> sections_;
};

/// A line after which something is missing: it ends in "...".
std::string marked_as_cut(const std::string& line, std::size_t width);

/// `text` in a terminal's colour or weight ("1" bold, "1;31" bold red) where `colour` is set.
std::string coloured(std::string_view text, std::string_view code, bool colour);

}  // namespace lockstep
