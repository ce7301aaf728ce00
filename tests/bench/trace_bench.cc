// How fast traces are checked: 1,024 ranks of 100,000 calls that agree, and reading calls one by one. By hand:
//   trace_bench DIRECTORY [RANKS CALLS RING_MIB]      writes RANKS traces there (RING_MIB 0: as large as the calls need)
#include <sys/resource.h>

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
  const auto of = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; };
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
    TraceSample trace({.rank = rank, .ranks = ranks, .blocks = static_cast<std::uint32_t>(ring_bytes / kBlockBytes), .block_bytes = kBlockBytes});
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

int run(const std::string& directory, int ranks, int calls, int ring_mib) {
  write_traces(directory, ranks, calls, ring_mib);
  const std::vector<std::string> paths{directory};
  for (int i = 0; i < 3; ++i) {
    const double start = seconds();
    const double cpu_start = cpu_seconds();
    const Result<Job> job = load_job(paths);
    if (!job) {
      std::fprintf(stderr, "%s\n", job.error().message.c_str());
      return 1;
    }
    const double read = seconds();
    const double read_cpu = cpu_seconds() - cpu_start;
    const Report report = diagnose(*job);
    const double end = seconds();
    const double made = static_cast<double>(job->operation_count());
    const Memory used = memory();
    std::printf("%d ranks x %d calls: %s, %s; read %.3f s (%.3f s of CPU), diagnosed %.3f s; %.0f operations, %.1f million/s of CPU; %.0f MiB anonymous, %.0f MiB peak\n", ranks,
                calls, std::string(verdict_name(report.verdict)).c_str(), report.summary.c_str(), read - start, read_cpu, end - read, made,
                made / 1e6 / read_cpu, used.anonymous, used.all);
  }
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
