// One random fault put into a correct job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/random.h"
#include "support/sketch.h"

namespace lockstep::testing {

enum class FaultKind : std::uint8_t {
  kSkip,
  kExtra,
  kSwap,
  kRoot,
  kDatatype,
  kCount,
  kReduction,
  kPeer,
  kCommunicator,
  kEarlyExit,
};
inline constexpr int kFaultKinds = 10;
std::string_view fault_name(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::kSkip;
  std::int32_t rank = 0;
  int comm = -1;  ///< of the call that was changed, before the change
  std::uint32_t seq =
      0;  ///< its position before the change: among the rank's collectives on `comm`, or among its
          ///< messages on `comm` to (or from) the same partner; an extra call: where it was put
  bool message = false;
  std::string what{};  ///< for the person who reads a failed test
};

/// Changes `job` and says how; nothing (and `job` unchanged) where the draw did not fit this job. Whether the
/// job is wrong afterwards is for the oracle to say: swapping two equal calls, say, does no harm.
std::optional<Fault> inject_fault(JobSketch& job, Random& random);

}  // namespace lockstep::testing
