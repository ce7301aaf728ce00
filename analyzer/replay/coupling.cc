// Union-find over launches; see the header.
#include "replay/coupling.h"

#include <numeric>

namespace lockstep {
namespace {

class DisjointSets {
 public:
  explicit DisjointSets(std::size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), std::uint32_t{0});
  }
  std::uint32_t find(std::uint32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void unite(std::uint32_t a, std::uint32_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

}  // namespace

Coupling couple_batches(const Job& job, const MatchResult& match, bool trust_completion) {
  Coupling coupling;
  coupling.component.resize(job.programs().size());
  std::uint32_t launch_count = 0;
  for (std::size_t p = 0; p < job.programs().size(); ++p) {
    std::uint32_t open_batch = 0;  // launch number of the batch that the operation before belonged to
    for (const Operation& operation : job.programs()[p].placed_operations()) {
      if (!is_placed_message(operation)) continue;
      const bool continues = operation.launch != 0 && operation.launch == open_batch;
      if (!continues) ++launch_count;
      open_batch = operation.launch;
      coupling.component[p].push_back(launch_count - 1);
    }
  }
  DisjointSets sets(launch_count);
  std::vector<std::uint32_t> first_launch(match.gate_count, Coupling::kNone);
  std::vector<bool> settled(match.gate_count, false);  // both sides are there, or are not needed
  for (std::size_t p = 0; p < coupling.component.size(); ++p) {
    std::size_t i = 0;
    for (const Operation& operation : job.programs()[p].placed_operations()) {
      if (!is_placed_message(operation)) continue;
      const std::uint32_t launch = coupling.component[p][i];
      const GateIndex gate = match.message_gates[p][i++];
      if (gate == kNoGate) continue;
      std::uint32_t& first = first_launch[to_size(gate)];
      if (first == Coupling::kNone) {
        first = launch;
      } else {
        settled[to_size(gate)] = true;
        sets.unite(first, launch);
      }
      if (trust_completion && operation.state == OpState::kCompleted) settled[to_size(gate)] = true;
    }
  }
  coupling.launches.assign(launch_count, 0);
  for (std::uint32_t launch = 0; launch < launch_count; ++launch) ++coupling.launches[sets.find(launch)];
  for (std::size_t gate = 0; gate < first_launch.size(); ++gate) {
    if (first_launch[gate] != Coupling::kNone && !settled[gate]) ++coupling.launches[sets.find(first_launch[gate])];
  }
  for (std::size_t p = 0; p < coupling.component.size(); ++p) {
    for (std::size_t i = 0; i < coupling.component[p].size(); ++i) {
      std::uint32_t& component = coupling.component[p][i];
      component = match.message_gates[p][i] == kNoGate ? Coupling::kNone : sets.find(component);
    }
  }
  return coupling;
}

}  // namespace lockstep
