// `lockstep plan show`: stages with their layers and optimizer groups, process groups, and calls per
// communicator and rank.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/rank_ranges.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/plan_file.h"
#include "cli/plan_parts.h"
#include "plan/versions.h"
#include "report/printable.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostGroupsListed = 4;

/// Layers one after the other with the same name become "name x24".
std::string layer_names(const plan::Plan& plan, std::size_t first, std::size_t end) {
  std::vector<std::string> names;
  for (std::size_t i = first; i < end;) {
    const std::string name = display_name(plan.layers[i]) + (plan.layers[i].tied.empty() ? "" : " (tied)");
    std::size_t same = i + 1;
    while (same < end && display_name(plan.layers[same]) == display_name(plan.layers[i]) &&
           plan.layers[same].tied == plan.layers[i].tied)
      ++same;
    names.push_back(same - i == 1 ? name : fmt::format("{} x{}", name, same - i));
    i = same;
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string stages_text(const plan::Plan& plan, const plan::Expansion& expansion) {
  std::string text;
  for (const auto& [rank, stage] : expansion.stages) {
    text += fmt::format("stage {}\n", expansion.layout.coordinate(plan::Axis::kStage, rank));
    for (const auto& [first, end] : stage.layers)
      text += fmt::format("  layers  {:<10} {}\n", fmt::format("[{}, {})", first, end),
                          printable(layer_names(plan, first, end)));
    for (const plan::OptimizerGroup& group : stage.groups)
      text += fmt::format("  group   {:<10} {} tensors, {} elements\n", group.name, group.parameters.size(),
                          group.elements());
    for (const std::string& name : stage.dropped)
      text += fmt::format("  group   {:<10} empty, dropped\n", name);
    for (const plan::TiedWeight& tie : stage.ties)
      text += fmt::format("  tied    {:<10} {}{}\n", printable(tie.key), printable(tie.parameter),
                          tie.gradient ? "" : ", without gradient");
  }
  return text;
}

std::string groups_text(const plan::Expansion& expansion) {
  std::string text = "process groups\n";
  for (const auto& [name, family] : expansion.layout.families) {
    std::vector<std::string> members;
    for (std::size_t i = 0; i < std::min(family.groups.size(), kMostGroupsListed); ++i)
      members.push_back(fmt::format("[{}]", fmt::join(family.groups[i], ",")).substr(0, 60));
    text += fmt::format("  {:<16} {} of {} rank{}: {}{}\n", printable(name), family.groups.size(),
                        family.groups[0].size(), family.groups[0].size() == 1 ? "" : "s",
                        fmt::join(members, " "), family.groups.size() > kMostGroupsListed ? " ..." : "");
  }
  return text;
}

/// Communicators whose members make equal numbers of calls are one line a kind; others list their members.
std::string calls_text(const plan::Expansion& expansion) {
  struct Line {
    std::size_t communicators = 0;
    std::string example{};
  };
  std::map<std::string, std::map<std::string, Line>> lines;
  for (std::uint32_t c = 0; c < expansion.job.communicators().size(); ++c) {
    const Communicator& communicator = expansion.job.communicator(CommIndex{c});
    std::map<std::uint64_t, std::vector<std::int32_t>> ranks_by_count;
    for (const std::int32_t rank : communicator.members) {
      std::uint64_t calls = 0;
      for (const Operation& operation : expansion.job.program(expansion.job.program_of_rank(rank)).operations)
        if (operation.comm == CommIndex{c}) ++calls;
      ranks_by_count[calls].push_back(rank);
    }
    std::vector<std::string> counts;
    for (const auto& [count, ranks] : ranks_by_count)
      counts.push_back(ranks_by_count.size() == 1 ? fmt::format("{} each", count)
                                                  : fmt::format("{} by {}", count, named_ranks(ranks, 40)));
    Line& line = lines[communicator.name][fmt::format("{}", fmt::join(counts, ", "))];
    if (line.communicators++ == 0)
      line.example = fmt::format("[{}]", fmt::join(communicator.members, ",")).substr(0, 40);
  }
  std::string text = "calls per communicator and rank, steady iteration\n";
  for (const auto& [name, by_counts] : lines)
    for (const auto& [counts, line] : by_counts)
      text +=
          fmt::format("  {:<16} {:<24} {}{}\n", printable(name), line.example, counts,
                      line.communicators == 1 ? "" : fmt::format(" ({} communicators)", line.communicators));
  return text;
}

int run_plan_show(std::span<const std::string_view> args) {
  std::string path;
  CLI::App app;
  app.add_option("PLAN", path, "plan file; - is standard input")->required();
  if (const auto done = parse_arguments(app, kPlanShowSubcommand, args)) return *done;
  const auto plan = load_plan(path);
  if (!plan) return input_error(plan.error());
  const auto expansion = plan::expand(*plan, plan::Iteration::kSteady);
  if (!expansion)
    return input_error({expansion.error().code, fmt::format("{}: {}", path, expansion.error().message)});
  const std::string_view note = plan::unchecked_version_note(framework_name(plan->framework), plan->version);
  std::string text =
      fmt::format("{}: {} {} on {} ranks\n", printable(plan->name.empty() ? path : plan->name),
                  framework_name(plan->framework), printable(plan->version), expansion->layout.world);
  if (!note.empty()) text += fmt::format("note: {}\n", note);
  text += stages_text(*plan, *expansion) + groups_text(*expansion) + calls_text(*expansion);
  return write_stdout(text) ? kExitConsistent : kExitInternal;
}

}  // namespace

const Subcommand kPlanShowSubcommand = {
    .name = "plan show",
    .summary = "Stages, layers, optimizer groups, process groups and calls of a plan.",
    .usage = "plan show PLAN",
    .run = run_plan_show,
};

}  // namespace lockstep
