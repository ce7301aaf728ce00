// A plan worked out: every rank's program of one iteration as a Job, and what the number of its calls depends
// on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job.h"
#include "plan/alike.h"
#include "plan/layout.h"
#include "plan/plan.h"
#include "plan/stages.h"

namespace lockstep::plan {

/// Iterations that differ from each other.
enum class Iteration : std::uint8_t {
  kFirst,   ///< shapes are exchanged, DDP has one bucket
  kSecond,  ///< DDP rebuilds its buckets
  kSteady,
  kSkipped,  ///< an overflow was found: no step is made
};
std::string_view iteration_name(Iteration iteration);

/// Trip count of a loop, or guard (0 or 1), or size, that decides about calls. Whether it varies, and over
/// which axes, is read off its values.
struct Quantity {
  std::string name{};                   ///< "number of optimizer groups"
  std::string per{};                    ///< of a loop: "optimizer group"; of a guard or size: empty
  std::string fix{};                    ///< what would make it the same everywhere, or of no consequence
  std::string field{};                  ///< of the plan that decides: "partition"
  std::vector<std::int64_t> by_rank{};  ///< kUnset where the rank never came to it
  /// By rank of Expansion::program_of: why it is what it is there. kThisRank stands for "rank 3".
  std::map<std::int32_t, std::string> reasons{};
  static constexpr std::int64_t kUnset = -1;
};
using QuantityIndex = std::size_t;

inline constexpr std::string_view kThisRank = "<this rank>";

struct Expansion {
  Job job{};  ///< of all ranks, or of those that are kept
  std::optional<AlikeRanks> alike{};  ///< what stands for ranks that are not in the job
  Layout layout{};
  std::vector<std::int32_t> program_of{};  ///< by rank: the first rank that has the same program
  Parts parts{};
  std::map<std::int32_t, Stage> stages{};  ///< by rank: of the first rank of each stage
  std::vector<Quantity> quantities{};
  std::map<SiteIndex, std::vector<QuantityIndex>>
      controls{};  ///< by call site of Job: what its calls depend on
};

enum class Ranks : std::uint8_t {
  kAll,
  kAlikeOnce,  ///< of ranks that are shown to be alike only some (plan/alike.h); of all where none are
};

/// Errors: fields that do not fit together (with their path in the plan), what the framework itself would
/// refuse.
Result<Expansion> expand(const Plan& plan, Iteration iteration, Ranks ranks = Ranks::kAll);

/// Iterations one after the other as one Job: what is left over at the end of one is met by the next. Quantities have
/// the values of the last.
Result<Expansion> expand(const Plan& plan, std::span<const Iteration> iterations, Ranks ranks = Ranks::kAll);

/// Members of a communicator of the job, with those that others stand for.
const std::vector<std::int32_t>& all_members(const Expansion& expansion, CommIndex comm);

/// Calls of all ranks, of those that others stand for too.
std::uint64_t call_count(const Expansion& expansion);

}  // namespace lockstep::plan
