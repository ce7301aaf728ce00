// How long a plan of 16,384 ranks takes, of which many are alike, and one whose ranks are each replayed for themselves.
// Usage: symmetry_bench [alike|all [PIPE DATA TENSOR MICRO_BATCHES]]. A way a process, so that its peak is its own.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "match/match.h"
#include "plan/expansion.h"
#include "plan/read_plan.h"
#include "replay/replay.h"

namespace lockstep::plan {
namespace {

std::string plan_text(std::int64_t pipe, std::int64_t data, std::int64_t tensor, std::int64_t micro_batches) {
  return fmt::format(
      R"({{"framework": {{"name": "megatron", "version": "0.16.1"}}, "topology": {{"pipe": {0}, "data": {1}, "tensor": {2}}},
    "datatype": "bf16", "layers": [{{"class": "Block", "repeat": {4}, "parameters": [{{"name": "w", "shape": [1024, 1024]}}, {{"name": "bias", "shape": [1024]}}],
                                    "outputs": [{{"shape": [2048, 1, 1024]}}]}}],
    "optimizer": {{"stepper": "megatron_distributed"}}, "schedule": {{"micro_batches": {3}}}}})",
      pipe, data, tensor, micro_batches, pipe * 2);
}


double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int run(const std::string& text, Ranks ranks) {
  const auto start = std::chrono::steady_clock::now();
  const auto plan = read_plan(text, "plan");
  if (!plan) {
    fmt::print(stderr, "{}\n", plan.error().message);
    return 2;
  }
  const auto expansion = expand(*plan, Iteration::kSteady, ranks);
  if (!expansion) {
    fmt::print(stderr, "{}\n", expansion.error().message);
    return 2;
  }
  const double to_expand = processor_seconds();
  const MatchResult matched = match(expansion->job);
  const double to_match = processor_seconds() - to_expand;
  const bool finished = matched.agreed() && replay(expansion->job, matched, {}).finished();
  const double total = processor_seconds();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto made = static_cast<double>(expansion->job.operation_count());
  const auto meant = static_cast<double>(call_count(*expansion));
  fmt::print("{} of {} ranks replayed, {:.0f} of {:.0f} operations, {}\n", expansion->job.programs().size(),
             expansion->layout.world, made, meant, finished ? "finishes" : "STANDS STILL");
  fmt::print("{:.3f} s wall; {:.3f} s processor: expansion {:.3f}, matching {:.3f}, replay {:.3f}; {:.1f} M operations/s of "
             "processor; peak {:.2f} GiB\n",
             wall.count(), total, to_expand, to_match, total - to_expand - to_match, meant / total * 1e-6,
             static_cast<double>(usage.ru_maxrss) / (1024 * 1024));
  return finished ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::plan

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "alike";
  const auto number = [&](int index, std::int64_t otherwise) {
    return argc > index ? static_cast<std::int64_t>(std::strtoll(argv[index], nullptr, 10)) : otherwise;
  };
  const std::string text = lockstep::plan::plan_text(number(2, 16), number(3, 128), number(4, 8), number(5, 512));
  return lockstep::plan::run(text, way == "all" ? lockstep::plan::Ranks::kAll : lockstep::plan::Ranks::kAlikeOnce);
}
