// Instructions of DeepSpeed's pipeline schedule as users print them, one a line before each is executed: "0 SendActivation(buffer_id=1)".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "read/job_intake.h"

namespace lockstep {

class LogInstructions {
 public:
  /// True where the line was one, or says that a rank is done with its schedule. `rank` is what prefixes say; the line itself may.
  bool read(std::string_view text, std::uint32_t line, std::optional<std::int32_t> rank);
  bool empty() const { return ranks_.empty(); }
  /// Takes over ranks that another log printed.
  void merge(LogInstructions&& other) { ranks_.merge(other.ranks_); }
  /// Adds a program for each rank, messages towards the stages that the instructions show; returns how many. Which rank is
  /// which stage the lines do not say: it is inferred where only one answer fits a pipe x data grid, and the warning says so.
  std::size_t add_programs(std::string_view path, JobIntake& intake);

 private:
  enum class What : std::uint8_t {  // messages first
    kSendActivation, kRecvActivation, kSendGrad, kRecvGrad, kOptimizerStep, kForwardPass, kBackwardPass, kReduceGrads, kOther
  };
  struct Step {
    What what = What::kOther;
    std::uint32_t line = 0;
  };
  struct Rank {
    std::vector<Step> steps{};
    bool is_done = false;  ///< after the last step
    std::int64_t count(What what) const;
    /// Every pass has what goes with it. A log that lost a line would otherwise accuse the other side.
    bool is_whole() const;
  };
  /// Replicas of a stage; 0: cannot be told.
  std::size_t replicas() const;

  std::map<std::int32_t, Rank> ranks_{};
  std::size_t kept_ = 0;
};

}  // namespace lockstep
