// How fast traces are checked: 1,024 ranks of 100,000 calls that agree, and reading calls one by one. By hand:
//   trace_bench DIRECTORY [RANKS CALLS RING_MIB]      writes RANKS traces there (RING_MIB 0: as large as the calls need)
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "read/load.h"
#include "support/trace_sample.h"

namespace lockstep::testing {
namespace {

constexpr std::uint32_t kBlockBytes = 32 * 1024;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Of this process, on all cores: what a busy machine does not distort.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

/// Memory of this process that is not the page cache of a mapped file, and all of it, in MiB.
struct Memory {
  double anonymous = 0;
  double all = 0;
};
Memory memory() {
  Memory found;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) found.anonymous = std::strtod(line.c_str() + 8, nullptr) / 1024;
    if (line.starts_with("VmHWM:")) found.all = std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return found;
}

void write_traces(const std::string& directory, int ranks, int calls, int ring_mib) {
  std::filesystem::create_directories(directory);
  const std::uint64_t ring_bytes = ring_mib != 0 ? static_cast<std::uint64_t>(ring_mib) << 20
                                                 : (static_cast<std::uint64_t>(calls) / 511 + 2) * kBlockBytes;
  for (int rank = 0; rank < ranks; ++rank) {
    TraceSample trace({.rank = rank,
                       .ranks = ranks,
                       .blocks = static_cast<std::uint32_t>(ring_bytes / kBlockBytes),
                       .block_bytes = kBlockBytes});
    for (int i = 0; i < calls; ++i) {
      if (i % 8 == 7) trace.add({.kind = OpKind::kBroadcast, .count = 16, .datatype = 2, .peer = 0});
      else trace.add({.kind = OpKind::kAllReduce, .count = 1024, .datatype = 1, .redop = 1});
    }
    trace.finish();
    const std::string bytes = trace.bytes();
    std::ofstream(directory + "/rank" + std::to_string(rank) + ".lst", std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
}

struct LoadCost {
  double cpu_seconds = 0;  ///< 0: it failed
  double operations = 0;
};

/// One load in a process of its own, as `check` does it: memory that an earlier load left behind would flatter it.
LoadCost load_in_child(const std::vector<std::string>& paths) {
  LoadCost cost;
  int ends[2];
  if (::pipe(ends) != 0) return cost;
  const pid_t child = ::fork();
  if (child == 0) {
    const double start = cpu_seconds();
    const Result<Job> job = load_job(paths);
    if (job) cost = {cpu_seconds() - start, static_cast<double>(job->operation_count())};
    if (::write(ends[1], &cost, sizeof cost) != sizeof cost) ::_exit(1);
    ::_exit(0);
  }
  ::close(ends[1]);
  if (child < 0 || ::read(ends[0], &cost, sizeof cost) != sizeof cost) cost = {};
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  return cost;
}

/// What a load costs at best: the rest is what else the machine does.
bool measure_reading(const std::vector<std::string>& paths, int loads) {
  std::vector<double> costs;  // ns of CPU for each call
  double operations = 0;
  for (int i = 0; i < loads; ++i) {
    const LoadCost cost = load_in_child(paths);
    if (cost.operations == 0) return false;
    operations = cost.operations;
    costs.push_back(cost.cpu_seconds * 1e9 / operations);
  }
  std::ranges::sort(costs);
  const auto show = [&](const char* name, double ns) { std::printf(", %s %.1f ns = %.1f million/s", name, ns, 1e3 / ns); };
  std::printf("reading whole, CPU time a call: %.0f calls, %d loads", operations, loads);
  show("best", costs.front());
  show("p5", costs[costs.size() / 20]);
  show("median", costs[costs.size() / 2]);
  std::printf("\n");
  return true;
}

int run(const std::string& directory, int ranks, int calls, int ring_mib) {
  write_traces(directory, ranks, calls, ring_mib);
  const std::vector<std::string> paths{directory};
  if (!measure_reading(paths, 21)) std::fprintf(stderr, "nothing was read one by one\n");
  const double start = seconds();
  const Result<Job> job = load_job(paths);
  const double read = seconds();
  if (!job) return 1;
  const Report report = diagnose(*job);
  const double end = seconds();
  const Memory used = memory();
  std::printf("%d ranks x %d calls: %s, %s; read %.3f s, diagnosed %.3f s; %.0f MiB anonymous, %.0f MiB peak\n", ranks, calls,
              std::string(verdict_name(report.verdict)).c_str(), report.summary.c_str(), read - start, end - read,
              used.anonymous, used.all);
  return 0;
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  if (argc != 2 && argc != 5) {
    std::fprintf(stderr, "usage: %s DIRECTORY [RANKS CALLS RING_MIB]\n", argv[0]);
    return 2;
  }
  const auto number = [&](int at, int otherwise) { return argc == 5 ? std::atoi(argv[at]) : otherwise; };
  return lockstep::testing::run(argv[1], number(2, 1024), number(3, 100'000), number(4, 1));
}
