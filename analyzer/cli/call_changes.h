// What changed between two runs or plans: how often each rank makes each kind of call on each communicator.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "plan/expansion.h"

namespace lockstep {

/// Numbers of calls, by what is compared between the two sides.
class CallTotals {
 public:
  struct Key {
    std::string communicator{};           ///< name
    std::vector<std::int32_t> members{};  ///< in order of communicator rank
    std::string op{};
    auto operator<=>(const Key&) const = default;
  };
  /// By iteration; "" where the input is one run without kinds of iterations.
  using ByIteration = std::map<std::string, std::map<std::int32_t, std::uint64_t>, std::less<>>;

  /// Calls without a communicator are left out; communicators with equal names and members are one. O(operations).
  void add(const Job& job, std::string_view iteration);
  /// Those of all ranks, also where some stand for others: a rank makes on its communicators the calls that its image
  /// makes on those of the same roles (plan/alike.h, condition 1). Equal to add() of the job of all ranks.
  void add(const plan::Expansion& expansion, std::string_view iteration);
  const std::map<Key, ByIteration>& calls() const { return calls_; }
  /// Some were told of ranks by others that stand for them.
  bool of_alike_ranks() const { return of_alike_ranks_; }

 private:
  std::map<Key, ByIteration> calls_{};
  bool of_alike_ranks_ = false;
};

struct CallChange {
  CallTotals::Key calls{};
  std::vector<std::string> iterations{};           ///< that changed in this way; empty: there are no kinds
  std::map<std::int32_t, std::uint64_t> before{};  ///< by rank; a rank without such calls is missing
  std::map<std::int32_t, std::uint64_t> after{};
};

/// In the order of communicators and kinds; equal changes of several iterations are one. Iterations that only one side
/// has are not compared; nothing where they have none in common, as a plan and a run.
std::optional<std::vector<CallChange>> call_changes(const CallTotals& before, const CallTotals& after);

/// Lines for the end of a text report, at most about twenty; one that says so where nothing changed.
std::string call_changes_text(const std::vector<CallChange>& changes);

/// All of them, as schemas/report.schema.json has them.
nlohmann::ordered_json call_changes_json(const std::vector<CallChange>& changes);

}  // namespace lockstep
