// How the stand-in for NCCL behaves: its environment variables, read once a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::standin {

enum class GroupMode { kStrict, kNccl226 };
enum class OnMismatch { kHang, kCorrupt, kDetect };
enum class FaultKind { kSkip, kReorder, kDelay, kKill };

/// Something that goes wrong at one collective: a rank's how-manieth on its how-manieth communicator.
struct FaultKnob {
  FaultKind kind = FaultKind::kSkip;
  int rank = 0;
  int communicator = 0;
  std::uint64_t seq = 0;
  int delay_ms = 100;
};

struct Config {
  GroupMode groups = GroupMode::kStrict;
  OnMismatch on_mismatch = OnMismatch::kHang;
  std::size_t eager_bytes = 0;
  bool eager = false;
  int resident = 0;  ///< collectives of one device that run at once; 0 = any number
  bool launch_order_implicit = false;
  int version = 22809;
  std::vector<FaultKnob> faults{};
};

const Config& config();

}  // namespace lockstep::standin
