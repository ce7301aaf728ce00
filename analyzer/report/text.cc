// The report as text: builds sections, then drops what matters least until they fit one screen.
#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <set>

#include "base/rank_ranges.h"
#include "report/columns.h"
#include "report/operation_rows.h"
#include "report/printable.h"

namespace lockstep {
namespace {

constexpr std::size_t kLabelWidth = 8;  // "counts" and two spaces
constexpr std::size_t kRowIndent = 2;
constexpr std::size_t kTitleLines = 2;
constexpr std::size_t kEntryLines = 2;  // of a warning or a next step

/// A labelled part of the report. Entries are dropped from the end, down to `minimum`, and then counted.
struct Section {
  std::string label{};
  std::vector<std::vector<std::string>> entries{};  ///< each one or more finished lines
  std::size_t minimum = 0;
  bool is_prose = false;  ///< entries are lines of one paragraph: a cut shows as "..."
  std::size_t shown = 0;
  std::vector<std::size_t> ranks{};  ///< rows: how many ranks each stands for
  std::size_t ranks_omitted = 0;     ///< rows: ranks left out already by who made the report

  /// One entry that does not fit goes without a word: "1 more" would take its line.
  bool is_left_out() const { return shown == 0 && entries.size() == 1; }
  bool is_cut() const { return shown < entries.size() || ranks_omitted != 0; }
  std::size_t line_count() const {
    if (is_left_out()) return 0;
    std::size_t lines = is_cut() && !is_prose ? 1 : 0;
    for (std::size_t i = 0; i < shown; ++i) lines += entries[i].size();
    return lines;
  }
  std::string rest_text() const {
    if (!label.empty()) return fmt::format("{}{} more", shown == 0 ? "" : "and ", entries.size() - shown);
    std::size_t hidden = ranks_omitted;
    for (std::size_t i = shown; i < ranks.size(); ++i) hidden += ranks[i];
    return fmt::format("and {} more rank{}", hidden, hidden == 1 ? "" : "s");
  }
};

/// A line after which something is missing.
std::string marked_as_cut(const std::string& line, std::size_t width) {
  if (display_width(line) + 4 <= width) return line + " ...";
  return cut_to_width(line + "....", width);
}

std::string capitals(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](char c) {
    return c == '_' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return text;
}

/// Says which of the ranks 0 ... expected - 1 are not in `seen`.
std::string missing_ranks_text(const std::vector<std::int32_t>& seen, std::size_t expected) {
  std::string text = fmt::format("{} ranks expected, {} seen", expected, seen.size());
  constexpr std::size_t kMostListed = 1'000'000;  // the number comes from the input and may be absurd
  if (expected > kMostListed) return text;
  const std::set<std::int32_t> present(seen.begin(), seen.end());
  std::vector<std::int32_t> missing;
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(expected); ++rank)
    if (!present.contains(rank)) missing.push_back(rank);
  if (missing.empty()) return text;
  return text + "; no record of " + named_ranks(missing, 50);
}

bool decides(const Finding& finding) { return finding.severity <= Severity::kContractViolation; }

class TextReport {
 public:
  TextReport(const Report& report, const TextOptions& options)
      : report_(report), options_(options), lead_(leading_finding(report)) {}

  std::string write();

 private:
  std::size_t body_width() const { return options_.width - kLabelWidth; }

  void add_paragraph(std::string label, const std::string& text, std::size_t minimum);
  void add_entries(std::string label, const std::vector<std::string>& texts, std::size_t minimum,
                   std::size_t lines_each);
  void add_finding(const Finding& finding);
  void add_counts(const Finding& finding);
  void add_places();
  void add_others(const Finding* detailed);
  void add_quality();
  void fit(std::size_t headline_lines);
  std::vector<std::string> headline() const;
  std::string coloured(std::string_view text, std::string_view code) const;
  void write_section(const Section& section, std::string& out) const;

  const Report& report_;
  const TextOptions& options_;
  const Finding* lead_;
  std::vector<Section> sections_;
};

std::string TextReport::coloured(std::string_view text, std::string_view code) const {
  return options_.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::vector<std::string> TextReport::headline() const {
  const std::string verdict = capitals(verdict_name(report_.verdict));
  std::string title = lead_ != nullptr && !lead_->title.empty() ? lead_->title : report_.summary;
  if (title.empty())
    title = report_.verdict == Verdict::kConsistent ? "no difference found" : "no finding decides";
  const std::size_t indent = verdict.size() + 2;
  std::vector<std::string> lines = wrap(printable(title), options_.width - indent);
  if (lines.size() > kTitleLines) {
    lines.resize(kTitleLines);
    lines.back() = marked_as_cut(lines.back(), options_.width - indent);
  }
  const bool good = report_.verdict == Verdict::kConsistent;
  const bool open = report_.verdict == Verdict::kInsufficient || report_.verdict == Verdict::kOtherCause;
  lines[0].insert(0, coloured(verdict, good ? "1;32" : (open ? "1;33" : "1;31")) + "  ");
  for (std::size_t i = 1; i < lines.size(); ++i) lines[i].insert(0, indent, ' ');
  return lines;
}

void TextReport::add_paragraph(std::string label, const std::string& text, std::size_t minimum) {
  if (text.empty()) return;
  Section section{.label = std::move(label), .minimum = minimum, .is_prose = true};
  for (std::string& line : wrap(printable(text), body_width())) section.entries.push_back({std::move(line)});
  sections_.push_back(std::move(section));
}

void TextReport::add_entries(std::string label, const std::vector<std::string>& texts, std::size_t minimum,
                             std::size_t lines_each) {
  if (texts.empty()) return;
  Section section{.label = std::move(label), .minimum = minimum};
  for (const std::string& text : texts) {
    std::vector<std::string> lines = wrap(printable(text), body_width());
    if (lines.size() > lines_each) {
      lines.resize(lines_each);
      lines.back() = marked_as_cut(lines.back(), body_width());
    }
    section.entries.push_back(std::move(lines));
  }
  sections_.push_back(std::move(section));
}

void TextReport::add_counts(const Finding& finding) {
  std::vector<std::string> texts;
  for (const CallCounts& counts : finding.counts) {
    std::map<std::uint64_t, std::vector<std::int32_t>, std::greater<>> ranks_by_count;
    for (const auto& [rank, calls] : counts.by_rank) ranks_by_count[calls].push_back(rank);
    if (ranks_by_count.size() < 2) continue;
    std::string text = counts.communicator;
    if (!counts.members.empty()) text += " [" + rank_ranges(counts.members, 30) + ']';
    if (!counts.call_site.empty()) text += " from " + counts.call_site;
    std::string_view separator = ": ";
    for (const auto& [calls, ranks] : ranks_by_count) {
      text += fmt::format("{}{} {} {}", separator, named_ranks(ranks, 36),
                          ranks.size() == 1 ? "makes" : "make", calls);
      separator = ", ";
    }
    texts.push_back(text);
  }
  add_entries("counts", texts, 1, 1);
}

void TextReport::add_finding(const Finding& finding) {
  Section rows{.minimum = 2, .ranks_omitted = finding.wait_for_omitted};
  for (OperationRow& row : operation_rows(finding, options_.width - kRowIndent)) {
    rows.entries.push_back({std::move(row.text)});
    rows.ranks.push_back(row.ranks);
  }
  if (!rows.entries.empty()) sections_.push_back(std::move(rows));
  add_paragraph("cause", finding.explanation, 4);
  add_paragraph("fix", finding.fix, 2);
  add_counts(finding);
  add_places();

  std::string name = fmt::format("{}, {}", finding.finding_class, severity_name(finding.severity));
  if (!finding.models.empty()) name += fmt::format(" (models: {})", fmt::join(finding.models, ", "));
  add_entries("class", {name + "; lockstep explain says more"}, 0, 1);

  std::vector<std::string> places;
  for (const Evidence& evidence : finding.evidence)
    places.push_back(evidence.line == 0 ? evidence.file : fmt::format("{}:{}", evidence.file, evidence.line));
  if (!places.empty()) add_entries("seen in", {fmt::format("{}", fmt::join(places, ", "))}, 0, kEntryLines);
}

void TextReport::add_places() {
  std::vector<std::string> texts;
  for (const Suspect& suspect : report_.suspects) {
    const Place& place = suspect.place;
    if (suspect.role != "cause" || (place.host.empty() && place.pid == 0)) continue;
    std::string text = fmt::format("rank {}:", suspect.rank);
    if (!place.host.empty()) text += " host " + place.host;
    if (place.pid != 0) text += fmt::format(" pid {}", place.pid);
    if (place.local_rank) text += fmt::format(" local rank {}", *place.local_rank);
    if (!place.device.empty()) text += " device " + place.device;
    texts.push_back(text);
  }
  add_entries("where", texts, 0, 1);
}

void TextReport::add_others(const Finding* detailed) {
  std::vector<std::string> texts;
  for (const Finding& finding : report_.findings) {
    if (&finding == detailed) continue;
    texts.push_back(
        fmt::format("{} {}: {}", severity_name(finding.severity), finding.finding_class, finding.title));
  }
  add_entries("also", texts, 0, 1);
}

void TextReport::add_quality() {
  const Report::Quality& quality = report_.input_quality;
  add_entries("next", report_.next_evidence, 1, kEntryLines);
  std::vector<std::string> warnings;
  if (quality.ranks_expected && *quality.ranks_expected > quality.ranks_seen.size())
    warnings.push_back(missing_ranks_text(quality.ranks_seen, *quality.ranks_expected));
  warnings.insert(warnings.end(), quality.warnings.begin(), quality.warnings.end());
  if (!quality.complete && warnings.empty()) warnings.emplace_back("the input is not complete");
  add_entries("warning", warnings, 1, kEntryLines);
  if (!report_.run.others.empty())
    add_entries("run",
                {fmt::format("{}, attempt {}; not read: {}", report_.run.name, report_.run.attempt,
                             fmt::join(report_.run.others, ", "))},
                1, 1);
}

void TextReport::fit(std::size_t headline_lines) {
  for (Section& section : sections_) section.shown = section.entries.size();
  const auto total = [&] {
    std::size_t lines = headline_lines;
    for (const Section& section : sections_) lines += section.line_count();
    return lines;
  };
  // Rows come to a handful first, then the rest in this order; prose is cut last.
  constexpr std::size_t kRowsAtFirst = 8;
  for (Section& section : sections_)
    if (section.label.empty() && section.entries.size() > kRowsAtFirst) section.shown = kRowsAtFirst;
  for (const std::string_view label :
       {"also", "warning", "where", "counts", "next", "", "seen in", "class", "cause", "fix"})
    for (Section& section : sections_)
      while (section.label == label && section.shown > section.minimum && total() > options_.max_lines)
        --section.shown;
}

void TextReport::write_section(const Section& section, std::string& out) const {
  if (section.is_left_out()) return;
  const std::size_t indent = section.label.empty() ? kRowIndent : kLabelWidth;
  bool first = true;
  const auto write_line = [&](std::string_view line) {
    if (first && !section.label.empty()) {
      out += coloured(section.label, "1");
      out.append(kLabelWidth - section.label.size(), ' ');
    } else {
      out.append(indent, ' ');
    }
    out += line;
    out += '\n';
    first = false;
  };
  for (std::size_t i = 0; i < section.shown; ++i)
    for (const std::string& line : section.entries[i])
      write_line(section.is_prose && section.is_cut() && i + 1 == section.shown
                     ? marked_as_cut(line, body_width())
                     : line);
  if (section.is_cut() && !section.is_prose) write_line(section.rest_text());
}

std::string TextReport::write() {
  const Finding* detailed = lead_;
  if (detailed == nullptr && !report_.findings.empty()) {
    detailed = &report_.findings.front();
    add_paragraph("note", fmt::format("{}: {}", severity_name(detailed->severity), detailed->title), 1);
  }
  if (detailed != nullptr) add_finding(*detailed);
  add_others(detailed);
  add_quality();
  const std::vector<std::string> title = headline();
  fit(title.size());
  std::string out;
  for (const std::string& line : title) out += line + '\n';
  for (const Section& section : sections_) write_section(section, out);
  return out;
}

}  // namespace

const Finding* leading_finding(const Report& report) {
  const auto deciding = std::ranges::find_if(report.findings, decides);
  if (deciding != report.findings.end()) return &*deciding;
  const auto same_verdict = std::ranges::find(report.findings, report.verdict, &Finding::verdict);
  return same_verdict == report.findings.end() ? nullptr : &*same_verdict;
}

std::string report_text(const Report& report, const TextOptions& options) {
  return TextReport(report, options).write();
}

}  // namespace lockstep
