// Does a recorded run do what its plan says? Groups are matched by members, iterations by repetition.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/job.h"
#include "plan/expansion.h"

namespace lockstep::plan {

enum class Conformance : std::uint8_t { kConforms, kDiffers, kInsufficient };
std::string_view conformance_name(Conformance conformance);

/// Where a rank left its plan: a call of the record against a call of the plan. Positions count from 0.
struct Difference {
  std::int32_t rank = 0;
  std::size_t iteration = 0;             ///< training steps before it
  std::size_t position = 0;              ///< in the program of the iteration
  const Operation* recorded = nullptr;   ///< nullptr: the record ends
  const Operation* planned = nullptr;    ///< nullptr: the plan ends
  const Expansion* expansion = nullptr;  ///< that `planned` belongs to
};

struct RankConformance {
  std::int32_t rank = 0;
  std::size_t unclaimed_before = 0;  ///< calls before the first training step, of which the plan says nothing
  std::size_t unclaimed_after = 0;   ///< calls behind the last one
  std::size_t iterations = 0;        ///< whole ones
  std::size_t partial = 0;           ///< calls of the one in which the record ends
  std::size_t calls = 0;             ///< that agree
  /// Where the record ends inside a step: the plan's calls for the last one of the record and for the one behind it
  /// (nullptr: none), and the expansion that they belong to.
  const Operation* last = nullptr;
  const Operation* next = nullptr;
  const Expansion* expansion = nullptr;
};

struct ConformResult {
  Conformance conformance = Conformance::kInsufficient;
  std::vector<RankConformance> ranks{};
  std::vector<Difference> differences{};  ///< the first of each rank that has one, earliest first
};

/// `iterations`: the plan expanded as first, second, steady and, where it has one, skipped iteration, in this
/// order.
ConformResult conform(const Job& recorded, const std::vector<Expansion>& iterations);

}  // namespace lockstep::plan
