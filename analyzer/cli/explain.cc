// `lockstep explain`: what a class of finding means, how it comes about and how it is fixed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "diagnose/finding.h"
#include "report/columns.h"

namespace lockstep {
namespace {

constexpr std::size_t kWidth = 100;

std::string hanging(std::string_view label, std::string_view text) {
  constexpr std::size_t kLabelWidth = 9;
  std::string out;
  for (const std::string& line : wrap(text, kWidth - kLabelWidth)) {
    out += fmt::format("{:<{}}{}\n", label, kLabelWidth, line);
    label = "";
  }
  return out;
}

std::string class_text(const FindingClass& entry) {
  return fmt::format("{}\n{}{}{}", entry.id, hanging("means", entry.means), hanging("arises", entry.arises),
                     hanging("fix", entry.fixed));
}

std::string list_text() {
  std::vector<Cells> rows;
  for (const FindingClass& entry : finding_classes()) {
    const std::string_view first_sentence = entry.means.substr(0, entry.means.find(". ") + 1);
    rows.push_back(
        {std::string(entry.id), std::string(first_sentence.empty() ? entry.means : first_sentence)});
  }
  std::string out;
  for (const std::string& line : align_columns(rows, 200, 1)) out += line + '\n';
  return out;
}

/// "N02": the classes that cover that class of public reports; empty where there is none.
std::string texts_of_report_class(std::string_view code) {
  std::string out;
  if (code.size() != 3) return out;
  for (const FindingClass& entry : finding_classes()) {
    if (entry.taxonomy.find(code) != std::string_view::npos) out += (out.empty() ? "" : "\n") + class_text(entry);
  }
  return out;
}

int run_explain(std::span<const std::string_view> args) {
  std::string id;
  CLI::App app;
  app.add_option("CLASS", id, "class of a finding, as a report names it, or of public reports (T01-T18, N01-N08); without it all are listed");
  if (const auto done = parse_arguments(app, kExplainSubcommand, args)) return *done;
  if (id.empty()) return write_stdout(list_text()) ? kExitConsistent : kExitInternal;

  if (const std::string covering = texts_of_report_class(id); !covering.empty()) return write_stdout(covering) ? kExitConsistent : kExitInternal;
  const FindingClass* entry = find_class(id);
  if (entry == nullptr) return usage_error(kExplainSubcommand, no_such_class(id));
  return write_stdout(class_text(*entry)) ? kExitConsistent : kExitInternal;
}

}  // namespace

const Subcommand kExplainSubcommand = {
    .name = "explain",
    .summary = "Say what a class of finding means, how it comes about and how it is fixed.",
    .usage = "explain [CLASS]",
    .run = run_explain,
};

}  // namespace lockstep
