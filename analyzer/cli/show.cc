// `lockstep show`: the calls that were read, rank by rank.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rank_ranges.h"
#include "cli/arguments.h"
#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "read/job_json_writer.h"
#include "read/load.h"
#include "report/calls.h"

namespace lockstep {
namespace {

struct RankRange {
  std::int32_t first = 0;
  std::int32_t last = 0;
};

/// "3" or "0-6".
std::optional<RankRange> parse_rank_range(std::string_view text) {
  RankRange range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  if (first.ec != std::errc{} || range.first < 0) return std::nullopt;
  range.last = range.first;
  if (first.ptr == end) return range;
  if (*first.ptr != '-') return std::nullopt;
  const auto last = std::from_chars(first.ptr + 1, end, range.last);
  if (last.ec != std::errc{} || last.ptr != end || range.last < range.first) return std::nullopt;
  return range;
}

/// The programs asked for, in order of rank; all of them for an empty list.
Result<std::vector<const Program*>> select_programs(const Job& job, const std::vector<std::string>& wanted) {
  std::vector<const Program*> programs;
  for (const Program& program : job.programs()) programs.push_back(&program);
  if (wanted.empty()) return programs;
  std::set<std::int32_t> ranks;
  for (const std::string& text : wanted) {
    const auto range = parse_rank_range(text);
    if (!range)
      return Error{ErrorCode::kUsage, fmt::format("'{}' is no rank (3) and no range of ranks (0-6)", text)};
    const std::size_t before = ranks.size();
    for (const Program* program : programs)
      if (program->rank >= range->first && program->rank <= range->last) ranks.insert(program->rank);
    if (ranks.size() != before || ranks.contains(range->first)) continue;
    std::vector<std::int32_t> seen;
    for (const Program* program : programs) seen.push_back(program->rank);
    return Error{ErrorCode::kUsage,
                 fmt::format("no record of rank {} in the input; there are {}", text, named_ranks(seen, 80))};
  }
  std::erase_if(programs, [&ranks](const Program* program) { return !ranks.contains(program->rank); });
  return programs;
}

/// By name, else by id. A name that several communicators share stands for the first: ids tell them apart.
Result<CommIndex> select_communicator(const Job& job, const std::string& wanted) {
  if (wanted.empty()) return kNoComm;
  const auto communicators = job.communicators();
  auto found = std::ranges::find(communicators, wanted, &Communicator::name);
  if (found == communicators.end()) found = std::ranges::find(communicators, wanted, &Communicator::id);
  if (found != communicators.end())
    return CommIndex{static_cast<std::uint32_t>(found - communicators.begin())};
  std::vector<std::string_view> names;
  for (const Communicator& communicator : communicators) names.push_back(communicator.name);
  return Error{ErrorCode::kUsage,
               fmt::format("no communicator '{}' in the input{}", wanted, did_you_mean(wanted, names))};
}

int show_text(const Job& job, const std::vector<const Program*>& programs, const CallFilter& filter) {
  if (!write_stdout(communicators_text(job))) return kExitInternal;
  for (const Program* program : programs)
    if (!write_calls(job, *program, filter, write_stdout)) return kExitInternal;
  return kExitConsistent;
}

int run_show(std::span<const std::string_view> args) {
  std::vector<std::string> inputs;
  std::vector<std::string> ranks;
  std::string communicator_name;
  std::string format = "text";
  CallFilter filter;

  CLI::App app;
  app.add_option("INPUT", inputs, "files or directories with evidence of one run")->required();
  app.add_option("--rank", ranks, "rank, or range of ranks (0-6), whose calls to show; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--comm", communicator_name, "only the calls on this communicator (name or id)");
  app.add_option("--last", filter.last, "only the last N calls of each rank")
      ->check([](const std::string& text) {  // CLI11 would wrap "-1" around
        return text.starts_with('-') ? "a number of calls is wanted, not " + text : std::string();
      });
  app.add_option("--format", format, "text, or job: the whole input as Job JSON, to edit and check again")
      ->check(CLI::IsMember({"text", "job"}))
      ->capture_default_str();
  if (const auto done = parse_arguments(app, kShowSubcommand, args)) return *done;

  const Result<Job> job = load_job(inputs);
  if (!job) return input_error(job.error());
  for (const std::string& warning : job->quality().warnings) print_warning(warning);
  if (format == "job") {
    bool written = true;
    write_job_json(*job, [&](std::string_view piece) { written = written && write_stdout(piece); });
    return written ? kExitConsistent : kExitInternal;
  }

  const auto programs = select_programs(*job, ranks);
  if (!programs) return usage_error(kShowSubcommand, programs.error().message);
  const auto comm = select_communicator(*job, communicator_name);
  if (!comm) return usage_error(kShowSubcommand, comm.error().message);
  filter.comm = *comm;
  return show_text(*job, *programs, filter);
}

}  // namespace

const Subcommand kShowSubcommand = {
    .name = "show",
    .summary = "Show the communicators and the calls of each rank, as they were read.",
    .usage = "show [--rank R]... [--comm NAME] [--last N] [--format text|job] INPUT...",
    .run = run_show,
};

}  // namespace lockstep
