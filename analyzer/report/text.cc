// The report as text: what is said, in which order, and what gives way first where the screen is short.
#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <set>

#include "base/rank_ranges.h"
#include "report/columns.h"
#include "report/operation_rows.h"
#include "report/printable.h"
#include "report/sections.h"

namespace lockstep {
namespace {

constexpr std::size_t kTitleLines = 2;
constexpr std::size_t kShortestPlace = 24;  // columns of a call site before its numbers
constexpr std::size_t kEntryLines = 2;  // of a warning or a next step
constexpr std::size_t kMostRows = 8;    // of ranks in calls, even where there is room for more

/// What gives way first where the screen is short; "" = rows of ranks in calls. The minima of the sections
/// add up to less than a screen.
constexpr std::array<std::string_view, 11> kDispensable = {
    "also", "warning", "where", "counts", "next", "", "seen in", "class", "note", "cause", "fix"};

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

/// "6m12s", "3h05m", "4s".
std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::min(seconds, 1e12));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

class TextReport {
 public:
  TextReport(const Report& report, const TextOptions& options)
      : report_(report),
        options_(options),
        lead_(leading_finding(report)),
        sections_(options.width, options.max_lines, options.colour) {}

  std::string write();

 private:
  void add_finding(const Finding& finding);
  void add_counts(const Finding& finding);
  void add_places();
  void add_others(const Finding* detailed);
  void add_quality();
  std::vector<std::string> headline() const;

  const Report& report_;
  const TextOptions& options_;
  const Finding* lead_;
  Sections sections_;
};

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
  lines[0].insert(0, coloured(verdict, good ? "1;32" : (open ? "1;33" : "1;31"), options_.colour) + "  ");
  for (std::size_t i = 1; i < lines.size(); ++i) lines[i].insert(0, indent, ' ');
  return lines;
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
    std::string numbers;
    std::string_view separator = ": ";
    for (const auto& [calls, ranks] : ranks_by_count) {
      numbers += fmt::format("{}{} {} {}", separator, named_ranks(ranks, 36),
                             ranks.size() == 1 ? "makes" : "make", calls);
      separator = ", ";
    }
    // The numbers are what it is about: the place gives way.
    const std::size_t width = sections_.body_width();
    const std::size_t room = std::max(kShortestPlace, width - std::min(width, display_width(numbers)));
    texts.push_back(cut_to_width(printable(text), room) + numbers);
  }
  sections_.add_entries("counts", texts, 1, 1);
}

void TextReport::add_finding(const Finding& finding) {
  std::vector<OperationRow> rows = operation_rows(finding, options_.width - Sections::kRowIndent);
  std::size_t ranks_omitted = finding.wait_for_omitted;
  for (; rows.size() > kMostRows; rows.pop_back()) ranks_omitted += rows.back().ranks;
  sections_.add_rows(std::move(rows), 2, ranks_omitted);
  sections_.add_paragraph("cause", finding.explanation, 4);
  sections_.add_paragraph("fix", finding.fix, 2);
  add_counts(finding);
  add_places();

  std::string name = fmt::format("{}, {}", finding.finding_class, severity_name(finding.severity));
  if (!finding.models.empty()) name += fmt::format(" (models: {})", fmt::join(finding.models, ", "));
  sections_.add_entries("class", {name + "; lockstep explain says more"}, 0, 1);

  std::vector<std::string> places;
  for (const Evidence& evidence : finding.evidence)
    places.push_back(evidence.line == 0 ? evidence.file : fmt::format("{}:{}", evidence.file, evidence.line));
  if (!places.empty())
    sections_.add_entries("seen in", {fmt::format("{}", fmt::join(places, ", "))}, 0, kEntryLines);
}

void TextReport::add_places() {
  std::vector<std::string> texts;
  for (const Suspect& suspect : report_.suspects) {
    const Place& place = suspect.place;
    if (suspect.role != "cause" || (place.host.empty() && place.pid == 0 && suspect.pod.empty())) continue;
    std::string text = fmt::format("rank {}:", suspect.rank);
    if (!suspect.pod.empty()) text += " pod " + suspect.pod;
    if (!place.host.empty()) text += " host " + place.host;
    if (place.pid != 0) text += fmt::format(" pid {}", place.pid);
    if (place.local_rank) text += fmt::format(" local rank {}", *place.local_rank);
    if (!place.device.empty()) text += " device " + place.device;
    texts.push_back(text);
  }
  if (report_.action == Action::kInspectNodes && !report_.action_hosts.empty()) {
    texts.push_back(fmt::format("inspect {}{}", fmt::join(report_.action_hosts, ", "),
                                report_.action_ranks.empty() ? "" : " (" + named_ranks(report_.action_ranks, 36) + ')'));
  }
  sections_.add_entries("where", texts, 0, 1);
}

void TextReport::add_others(const Finding* detailed) {
  std::vector<std::string> texts;
  for (const Finding& finding : report_.findings) {
    if (&finding == detailed) continue;
    texts.push_back(
        fmt::format("{} {}: {}", severity_name(finding.severity), finding.finding_class, finding.title));
  }
  sections_.add_entries("also", texts, 0, 1);
}

void TextReport::add_quality() {
  const Report::Quality& quality = report_.input_quality;
  const Report::Progress& progress = report_.progress;
  if (progress.stalled_for_s > 0) {
    sections_.add_entries(
        "live", {fmt::format("stalled {}: no rank has entered or left a call since", duration_text(progress.stalled_for_s))}, 1, 1);
  } else if (progress.state == ProgressState::kAdvancing) {
    sections_.add_entries("live", {"advancing: ranks moved between two looks"}, 1, 1);
  }
  sections_.add_entries("next", report_.next_evidence, 1, kEntryLines);
  std::vector<std::string> warnings;
  if (quality.ranks_expected && *quality.ranks_expected > quality.ranks_seen.size())
    warnings.push_back(missing_ranks_text(quality.ranks_seen, *quality.ranks_expected));
  warnings.insert(warnings.end(), quality.warnings.begin(), quality.warnings.end());
  if (!quality.complete && warnings.empty()) warnings.emplace_back("the input is not complete");
  sections_.add_entries("warning", warnings, 1, kEntryLines);
  if (!report_.run.others.empty())
    sections_.add_entries("run",
                          {fmt::format("{}, attempt {}; not read: {}", report_.run.name, report_.run.attempt,
                                       fmt::join(report_.run.others, ", "))},
                          1, 1);
}

std::string TextReport::write() {
  const Finding* detailed = lead_;
  if (detailed == nullptr && !report_.findings.empty()) {
    detailed = &report_.findings.front();
    sections_.add_paragraph("note", fmt::format("{}: {}", severity_name(detailed->severity), detailed->title),
                            1);
  }
  if (detailed != nullptr) add_finding(*detailed);
  add_others(detailed);
  add_quality();
  const std::vector<std::string> title = headline();
  sections_.fit(options_.max_lines - title.size(), kDispensable);
  return fmt::format("{}\n{}", fmt::join(title, "\n"), sections_.text());
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
