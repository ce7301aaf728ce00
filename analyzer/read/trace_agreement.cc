// See the header.
#include "read/trace_agreement.h"

#include <algorithm>
#include <functional>
#include <map>

namespace lockstep {
namespace {

struct State {
  std::uint64_t calls = 0;
  std::uint64_t fingerprint = 0;
  std::size_t member = 0;
  friend auto operator<=>(const State&, const State&) = default;
};

}  // namespace

Agreement compare_states(const std::vector<MemberStates>& members) {
  std::vector<State> states;
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (const trace::Checkpoint& state : members[m].states) {
      if (state.calls != 0) states.push_back({state.calls, state.fingerprint, m});
    }
  }
  std::ranges::sort(states);
  states.erase(std::unique(states.begin(), states.end()), states.end());

  Agreement agreement;
  for (std::size_t from = 0; from < states.size();) {
    std::size_t to = from;
    while (to < states.size() && states[to].calls == states[from].calls) ++to;
    if (states[to - 1].fingerprint != states[from].fingerprint) {
      std::map<std::uint64_t, std::vector<std::int32_t>> by_fingerprint;
      for (std::size_t i = from; i < to; ++i) by_fingerprint[states[i].fingerprint].push_back(members[states[i].member].rank);
      for (auto& [fingerprint, ranks] : by_fingerprint) {
        std::ranges::sort(ranks);
        agreement.parties.push_back(std::move(ranks));
      }
      std::ranges::stable_sort(agreement.parties, std::greater{}, &std::vector<std::int32_t>::size);
      agreement.differs_by = states[from].calls;
      return agreement;
    }
    if (to - from == members.size()) agreement.proven = states[from].calls;
    from = to;
  }
  return agreement;
}

}  // namespace lockstep
