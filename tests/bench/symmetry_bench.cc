// How long a plan of 16,384 ranks takes, of which many are alike, and one whose ranks are each replayed for themselves.
// Usage: symmetry_bench [alike|all [PIPE DATA TENSOR MICRO_BATCHES [TIMES]]]. Each run is a process of its own, so that
// its peak and its page faults are. The best of several says what the code costs; the others add what neighbours on the
// machine do.
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
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

/// Instructions of this process in user mode, where the machine counts them: virtual ones mostly do not.
class InstructionCounter {
 public:
  InstructionCounter() {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.size = sizeof(attributes);
    attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    file_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
  }
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;
  ~InstructionCounter() {
    if (file_ >= 0) close(file_);
  }
  /// 0 where they are not counted.
  std::uint64_t count() const {
    std::uint64_t value = 0;
    return file_ >= 0 && read(file_, &value, sizeof(value)) == sizeof(value) ? value : 0;
  }

 private:
  int file_ = -1;
};

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// What a run costs, as its process tells the one that started it.
struct Cost {
  double seconds = 0;  ///< of processor
  double operations = 0;
};

int run(const std::string& text, Ranks ranks, Cost& cost) {
  const InstructionCounter instructions;
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
  fmt::print(
      "{:.3f} s wall; {:.3f} s processor: expansion {:.3f}, matching {:.3f}, replay {:.3f}; {:.1f} M operations/s of "
      "processor; peak {:.2f} GiB, {:.0f} bytes/operation replayed; ",
      wall.count(), total, to_expand, to_match, total - to_expand - to_match, meant / total * 1e-6,
      static_cast<double>(usage.ru_maxrss) / (1024 * 1024), static_cast<double>(usage.ru_maxrss) * 1024 / made);
  if (const std::uint64_t count = instructions.count(); count != 0) {
    fmt::print("{:.0f} instructions/operation replayed\n", static_cast<double>(count) / made);
  } else {
    fmt::print("instructions are not counted here: tests/bench/instructions.py does\n");
  }
  cost = {total, meant};
  return finished ? 0 : 1;
}

/// run() in a process of its own.
int run_apart(const std::string& text, Ranks ranks, Cost& cost) {
  int ends[2];
  std::fflush(stdout);
  if (pipe(ends) != 0) return 2;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    const int status = run(text, ranks, cost);
    std::fflush(stdout);
    const bool told = write(ends[1], &cost, sizeof(cost)) == sizeof(cost);
    _exit(told ? status : 2);
  }
  close(ends[1]);
  const bool told = read(ends[0], &cost, sizeof(cost)) == sizeof(cost);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return told && WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

int run_times(const std::string& text, Ranks ranks, std::int64_t times) {
  if (times == 1) {
    Cost cost;
    return run(text, ranks, cost);
  }
  double best = std::numeric_limits<double>::max();
  double operations = 0;
  for (std::int64_t i = 0; i < times; ++i) {
    Cost cost;
    if (const int status = run_apart(text, ranks, cost); status != 0) return status;
    best = std::min(best, cost.seconds);
    operations = cost.operations;
  }
  fmt::print("best of {}: {:.3f} s processor, {:.1f} M operations/s\n", times, best, operations / best * 1e-6);
  return 0;
}

}  // namespace
}  // namespace lockstep::plan

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "alike";
  const auto number = [&](int index, std::int64_t otherwise) {
    return argc > index ? static_cast<std::int64_t>(std::strtoll(argv[index], nullptr, 10)) : otherwise;
  };
  const std::string text = lockstep::plan::plan_text(number(2, 16), number(3, 128), number(4, 8), number(5, 512));
  const auto ranks = way == "all" ? lockstep::plan::Ranks::kAll : lockstep::plan::Ranks::kAlikeOnce;
  return lockstep::plan::run_times(text, ranks, std::max<std::int64_t>(number(6, 1), 1));
}
