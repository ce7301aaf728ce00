// See the header.
#include "read/trace_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "read/trace_process.h"

namespace lockstep {
namespace {

using Inputs = std::vector<TraceInput>;

/// Runs are never mixed: that of the youngest process is read.
void choose_run(Inputs& inputs, JobBuilder& builder) {
  const TraceInput* youngest = nullptr;
  for (const TraceInput& input : inputs) {
    if (youngest == nullptr || input.tables.header.start_unix_ns > youngest->tables.header.start_unix_ns) youngest = &input;
  }
  const std::string run = youngest->tables.run;
  std::set<std::string> others;
  for (const TraceInput& input : inputs) {
    if (input.tables.run != run) others.insert(input.tables.run);
  }
  builder.set_name(run);
  builder.set_attempt(std::max(0, youngest->tables.process.attempt));
  if (others.empty()) return;
  for (const std::string& other : others) builder.add_other_run(other);
  builder.warn(fmt::format("the traces are of {} runs: {} is read, the newest", others.size() + 1, excerpt(run)));
  std::erase_if(inputs, [&](const TraceInput& input) { return input.tables.run != run; });
}

/// A process that drives several devices is several ranks.
void find_ranks(Inputs& inputs) {
  Inputs ranks;
  for (TraceInput& input : inputs) {
    std::vector<RankPart> parts = ranks_of(input.tables);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      ranks.push_back({.tables = input.tables, .ring = input.ring, .part = std::move(parts[i])});
    }
    input.part = std::move(parts.front());
    ranks.push_back(std::move(input));
  }
  inputs = std::move(ranks);
}

/// Launches that nothing but the place where their ranks meet tells apart (torchrun without an id) share a run's name.
struct Launches {
  std::uint64_t last_of_older = 0;                                              ///< start of the youngest file that another one replaced
  std::uint64_t first_of_newest = std::numeric_limits<std::uint64_t>::max();   ///< start of the oldest one that did
};

/// A rank that left no record in the newest launch must not be read from one before. Only files that are surely of an older
/// one: started no later than those that were replaced, and silent since before the newest began.
void leave_out_older(const Launches& launches, Inputs& inputs, JobBuilder& builder) {
  std::erase_if(inputs, [&](const TraceInput& input) {
    const std::uint64_t start = input.tables.header.start_unix_ns;
    if (start > launches.last_of_older || start >= launches.first_of_newest) return false;
    const double last = TraceClock(input.tables, input.ring).unix_seconds(last_ticks(input.tables, input.ring));
    constexpr double kNanosecond = 1e-9;
    if (last == 0 || last >= static_cast<double>(launches.first_of_newest) * kNanosecond) return false;
    builder.warn(fmt::format("{} is of an earlier launch of this run: not used", input.tables.path));
    return true;
  });
}

/// One file a rank. A fork of a recorded process is no rank of its own where that process has a file.
void choose_files(Inputs& inputs, JobBuilder& builder) {
  std::erase_if(inputs, [&](const TraceInput& input) {
    if (input.rank() >= 0) return false;
    builder.warn(fmt::format("{}: nothing says which rank wrote it (no launcher's variables, MPI not initialised, no communicator of NCCL): not used", input.tables.path));
    return true;
  });
  const auto preference = [](const TraceInput& input) {
    return std::tuple(input.rank(), input.tables.has_state(trace::kStateForkedFrom),
                      ~input.tables.header.start_unix_ns, input.tables.path);
  };
  std::ranges::sort(inputs, {}, preference);
  Launches launches;
  for (std::size_t i = 1; i < inputs.size();) {
    const TraceTables& used = inputs[i - 1].tables;
    const TraceTables& other = inputs[i].tables;
    if (inputs[i - 1].rank() != inputs[i].rank()) {
      ++i;
      continue;
    }
    builder.warn(fmt::format("{} is of rank {} too, and {}: {} is used", other.path, inputs[i].rank(),
                               other.has_state(trace::kStateForkedFrom) ? "of a forked process" : "older", used.path));
    if (!other.has_state(trace::kStateForkedFrom)) {
      launches.last_of_older = std::max(launches.last_of_older, other.header.start_unix_ns);
      launches.first_of_newest = std::min(launches.first_of_newest, used.header.start_unix_ns);
    }
    inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  leave_out_older(launches, inputs, builder);
}

}  // namespace

void choose_inputs(std::vector<TraceInput>& inputs, JobBuilder& builder) {
  choose_run(inputs, builder);
  find_ranks(inputs);
  choose_files(inputs, builder);
}

}  // namespace lockstep
