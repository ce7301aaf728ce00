// Which of two ranks left the path: of two calls that hold each other, the one that fits what followed at the same place of the
// program before.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "diagnose/describe.h"
#include "diagnose/finding.h"

namespace lockstep {

/// A call that a rank stands in.
struct StandingCall {
  ProgramIndex program = kNoProgram;
  std::uint32_t operation = 0;
};

/// Two ranks made the same calls with each other, up to the calls they stand in. What one of them stands in followed there before;
/// what the other stands in did not.
struct Departure {
  StandingCall call{};              ///< the call that one of the two makes and the other does not
  ProgramIndex without = kNoProgram;  ///< the rank that does not make it
  bool added = false;               ///< the rank in `call` left the path; else the one without it
  std::uint32_t usual = 0;          ///< in the program of the rank that kept to the path: what it stands in
  std::uint32_t before = 0;         ///< in the same program: the call before it
};

/// Nothing where the collectives before do not agree, where neither call has a precedent, or both an equally good one.
/// O(calls of the two ranks).
std::optional<Departure> find_departure(const Describer& describe, const StandingCall& a, const StandingCall& b);

struct DepartureWords {
  std::string_view finding_class{};
  std::string text{};  ///< "so far A was followed by B, and rank 1 goes on without it"
};
/// `callers` stand in the call of the departure, `others` do not come to it: job ranks, sorted.
DepartureWords departure_words(const Describer& describe, const Departure& departure, std::span<const std::int32_t> callers,
                               std::span<const std::int32_t> others);

/// Class, explanation, fix and counts of a cycle with a departure in it.
void explain_departure(const Describer& describe, const Departure& departure, std::span<const std::int32_t> callers,
                       std::span<const std::int32_t> others, Finding& finding);

}  // namespace lockstep
