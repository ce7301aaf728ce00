// How fast Flight Recorder dumps are read and judged, and how much memory an entry takes, on made dumps of the shapes that the
// peer was measured with: flight_bench [RANKS ENTRIES [dp|3d]]. Each run is a process of its own, so that its peak is its own.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "diagnose/diagnose.h"
#include "read/load.h"
#include "support/flight_writer.h"

namespace lockstep::testing {
namespace {

std::vector<std::int32_t> range(std::int32_t from, std::int32_t to, std::int32_t step = 1) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t rank = from; rank < to; rank += step) ranks.push_back(rank);
  return ranks;
}

void write_dumps(const std::filesystem::path& directory, std::int32_t ranks, int entries, bool three_axes) {
  constexpr std::int32_t kTensor = 8;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    FlightWriter writer;
    writer.group("0", "default_pg", range(0, ranks));
    const std::int32_t tensor = rank / kTensor;
    const std::string tensor_name = std::to_string(1 + tensor);
    const std::string data_name = std::to_string(1000 + rank % kTensor);
    if (three_axes) {
      writer.group(tensor_name, "TENSOR", range(tensor * kTensor, tensor * kTensor + kTensor));
      writer.group(data_name, "DATA", range(rank % kTensor, ranks, kTensor));
    }
    std::int64_t seq[3] = {0, 0, 0};
    for (int i = 0; i < entries; ++i) {
      FlightEntry entry;
      const std::size_t group = three_axes ? (i % 10 == 9 ? 0U : i % 3 == 2 ? 2U : 1U) : 0U;
      if (group == 1) entry.group = tensor_name, entry.description = "TENSOR", entry.pg_id = 1;
      if (group == 2) entry.group = data_name, entry.description = "DATA", entry.pg_id = 2;
      entry.collective_seq = ++seq[group];
      entry.created_ns += i * 1'000'000LL;
      entry.sizes = {1024 + i % 17, 128};
      for (std::size_t frame = 0; frame < 12; ++frame) entry.frames.push_back(frame < 3 ? static_cast<std::size_t>(i % 50) * 3 + frame : 1000 + frame);
      writer.entry(entry);
    }
    std::ofstream(directory / fmt::format("nccl_trace_rank_{}", rank), std::ios::binary) << writer.finish();
  }
}

double cpu_seconds(const rusage& usage) {
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/// CPU time and peak of a process that runs `work`.
template <class Work>
rusage measure(Work work) {
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(work() ? 0 : 1);
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  if (status != 0) std::puts("  FAILED");
  return usage;
}

void bench(std::int32_t ranks, int entries, bool three_axes) {
  const std::filesystem::path directory = std::filesystem::temp_directory_path() / fmt::format("flight_bench.{}", ::getpid());
  std::filesystem::create_directory(directory);
  write_dumps(directory, ranks, entries, three_axes);
  std::uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory)) bytes += file.file_size();
  const std::vector<std::string> paths{directory.string()};
  const rusage nothing = measure([] { return true; });
  double best_load = 1e9, best_all = 1e9;
  long peak = 0;
  for (int round = 0; round < 3; ++round) {
    const rusage load = measure([&] { return load_job(paths).has_value(); });
    const rusage all = measure([&] {
      const auto job = load_job(paths);
      return job && diagnose(*job, std::nullopt).verdict == Verdict::kConsistent;
    });
    best_load = std::min(best_load, cpu_seconds(load));
    best_all = std::min(best_all, cpu_seconds(all));
    peak = std::max(peak, all.ru_maxrss - nothing.ru_maxrss);
  }
  const double count = static_cast<double>(ranks) * entries;
  std::printf("%s %dx%d: %.1f MB; read %.3f s = %.2f M entries/s; read and judged %.3f s = %.2f M entries/s; peak %.0f B an entry\n",
              three_axes ? "3d" : "dp", ranks, entries, static_cast<double>(bytes) * 1e-6, best_load, count / best_load * 1e-6, best_all,
              count / best_all * 1e-6, static_cast<double>(peak) * 1024 / count);
  // Threads help the clock only: best of several, for other programs take their part of the cores.
  const auto wall_of = [&](unsigned jobs) {
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      const auto start = std::chrono::steady_clock::now();
      static_cast<void>(measure([&] { return load_job(paths, {.jobs = jobs}).has_value(); }));
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  };
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const double one = wall_of(1), all = wall_of(cores);
  std::printf("   read with --jobs 1: %.3f s of wall time, with --jobs %u: %.3f s, %.2f times as fast\n", one, cores, all, one / all);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  using lockstep::testing::bench;
  if (argc >= 3) {
    bench(std::atoi(argv[1]), std::atoi(argv[2]), argc > 3 && std::string_view(argv[3]) == "3d");
    return 0;
  }
  for (const int ranks : {8, 16, 32, 64, 256}) bench(ranks, 2000, false);
  bench(64, 2000, true);
  bench(8, 20000, false);
}
