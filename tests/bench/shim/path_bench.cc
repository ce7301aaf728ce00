// What the parts of a recorded call cost inside the recorder: its own sources, compiled in, without a library around them.
// Bursts of 1,000 calls, in ns a call; the 5th percentile is what the budget is about, the rest is what else the machine does.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "call_scope.h"

namespace lockstep::shim {
namespace {

constexpr int kBurst = 1000;
constexpr int kBursts = 4000;

template <class Call>
[[gnu::noinline]] void measure(const char* part, double budget_ns, Call call) {
  std::vector<double> bursts;
  bursts.reserve(kBursts);
  for (int burst = 0; burst < kBursts; ++burst) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kBurst; ++i) call(i);
    const auto end = std::chrono::steady_clock::now();
    bursts.push_back(std::chrono::duration<double, std::nano>(end - begin).count() / kBurst);
  }
  std::sort(bursts.begin(), bursts.end());
  const double p5 = bursts[kBursts / 20];
  std::printf("%-58s p5 %6.1f  min %6.1f  p50 %6.1f ns", part, p5, bursts.front(), bursts[kBursts / 2]);
  if (budget_ns > 0) std::printf("  budget %.0f: %s", budget_ns, p5 <= budget_ns ? "kept" : "MISSED");
  std::printf("\n");
}

/// An address in this program, as a return address would be.
const void* site(int index) { return reinterpret_cast<const std::byte*>(&ticks_per_second) + index; }

[[gnu::noinline]] bool call_once(const Call& call, const void* caller, bool finish) {
  CallScope scope(__builtin_frame_address(0), caller);
  if (!scope.active()) return false;
  scope.enter(call);
  if (finish) scope.finish(0);
  else scope.leave();
  return scope.record() != nullptr;
}

int run() {
  const std::string directory = (std::filesystem::temp_directory_path() / "lockstep-path-bench").string();
  ::setenv("LOCKSTEP_DIR", directory.c_str(), 1);
  Call call{.kind = OpKind::kBarrier, .has_position = false};
  if (!call_once(call, site(0), true)) {
    std::fprintf(stderr, "the recorder did not start\n");
    return 1;
  }
  constexpr std::uint64_t kHandle = 0x4400'0000;
  const std::int32_t members[] = {0, 1};
  add_comm({.handle = kHandle, .nranks = 2, .name = "MPI_COMM_WORLD", .members = members});
  const auto collective = [&] {
    Call made{.kind = OpKind::kAllReduce, .comm = find_comm(kHandle), .count = 1, .agreed_count = 1};
    made.agreed_type = 7;
    return made;
  };
  std::uint64_t sum = 0;
  measure("time stamp counter, once", 0, [&](int) { sum += ticks(); });
  measure("native call site, known address", 0, [&](int i) { sum += site_id(site(i & 7)); });
  measure("entry of a collective, with native call site", 20, [&](int) { sum += call_once(collective(), site(0), false) ? 1U : 0U; });
  measure("entry and return stamp, with native call site", 35, [&](int) { sum += call_once(collective(), site(0), true) ? 1U : 0U; });
  measure("the same from one of 1,000 call sites", 60, [&](int i) { sum += call_once(collective(), site(i), true) ? 1U : 0U; });
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return sum == 0 ? 1 : 0;
}

}  // namespace
}  // namespace lockstep::shim

int main() { return lockstep::shim::run(); }
