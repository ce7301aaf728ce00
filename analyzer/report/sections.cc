// The labelled parts of a text report, and how they are made to fit one screen.
#include "report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/columns.h"
#include "report/printable.h"

namespace lockstep {
namespace {

constexpr std::size_t kLabelWidth = 8;  // "seen in" and a space

}  // namespace

std::string marked_as_cut(const std::string& line, std::size_t width) {
  if (display_width(line) + 4 <= width) return line + " ...";
  return cut_to_width(line + "....", width);
}

std::string coloured(std::string_view text, std::string_view code, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

// One entry that does not fit goes without a word: "1 more" would take its line.
bool Sections::Section::is_left_out() const { return shown == 0 && entries.size() == 1 && omitted == 0; }

std::size_t Sections::Section::line_count() const {
  if (is_left_out()) return 0;
  std::size_t lines = is_cut() && !is_prose ? 1 : 0;
  for (std::size_t i = 0; i < shown; ++i) lines += entries[i].size();
  return lines;
}

std::string Sections::Section::rest_text() const {
  std::size_t hidden = omitted;
  for (std::size_t i = shown; i < entries.size(); ++i) hidden += weights.empty() ? 1 : weights[i];
  const std::string_view unit = weights.empty() ? "" : (hidden == 1 ? " rank" : " ranks");
  return fmt::format("{}{} more{}", shown == 0 ? "" : "and ", hidden, unit);
}

std::size_t Sections::body_width() const { return width_ - kLabelWidth; }

void Sections::add(Section section) {
  section.shown = section.entries.size();
  sections_.push_back(std::move(section));
}

void Sections::add_rows(std::vector<OperationRow> rows, std::size_t minimum, std::size_t ranks_omitted) {
  if (rows.empty()) return;
  Section section{.minimum = minimum, .omitted = ranks_omitted};
  for (OperationRow& row : rows) {
    if (section.entries.size() == max_lines_) {
      section.omitted += row.ranks;
      continue;
    }
    section.entries.push_back({std::move(row.text)});
    section.weights.push_back(row.ranks);
  }
  add(std::move(section));
}

void Sections::add_paragraph(std::string label, std::string_view text, std::size_t minimum) {
  if (text.empty()) return;
  Section section{.label = std::move(label), .minimum = minimum, .is_prose = true};
  for (std::string& line : wrap(printable(text), body_width())) section.entries.push_back({std::move(line)});
  add(std::move(section));
}

void Sections::add_entries(std::string label, const std::vector<std::string>& texts, std::size_t minimum,
                           std::size_t lines_each) {
  if (texts.empty()) return;
  const std::size_t kept = std::min(texts.size(), max_lines_);
  Section section{.label = std::move(label), .minimum = minimum, .omitted = texts.size() - kept};
  for (const std::string& text : std::span(texts).first(kept)) {
    std::vector<std::string> lines = wrap(printable(text), body_width());
    if (lines.size() > lines_each) {
      lines.resize(lines_each);
      lines.back() = marked_as_cut(lines.back(), body_width());
    }
    section.entries.push_back(std::move(lines));
  }
  add(std::move(section));
}

std::size_t Sections::line_count() const {
  std::size_t lines = 0;
  for (const Section& section : sections_) lines += section.line_count();
  return lines;
}

void Sections::fit(std::size_t lines, std::span<const std::string_view> dispensable) {
  for (const std::string_view label : dispensable)
    for (Section& section : sections_)
      while (section.label == label && section.shown > section.minimum && line_count() > lines)
        --section.shown;
}

void Sections::write(const Section& section, std::string& out) const {
  if (section.is_left_out()) return;
  const std::size_t indent = section.label.empty() ? kRowIndent : kLabelWidth;
  bool first = true;
  const auto write_line = [&](std::string_view line) {
    if (first && !section.label.empty()) {
      out += coloured(section.label, "1", colour_);
      out.append(kLabelWidth - section.label.size(), ' ');
    } else {
      out.append(indent, ' ');
    }
    out += line;
    out += '\n';
    first = false;
  };
  for (std::size_t i = 0; i < section.shown; ++i)
    for (const std::string& line : section.entries[i]) {
      const bool breaks_off = section.is_prose && section.is_cut() && i + 1 == section.shown;
      write_line(breaks_off ? marked_as_cut(line, body_width()) : line);
    }
  if (section.is_cut() && !section.is_prose) write_line(section.rest_text());
}

std::string Sections::text() const {
  std::string out;
  for (const Section& section : sections_) write(section, out);
  return out;
}

}  // namespace lockstep
