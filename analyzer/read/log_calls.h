// Calls that a log prints one by one: NCCL's COLL lines (NCCL_DEBUG_SUBSYS=COLL) and printed pipeline schedules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/job_intake.h"
#include "read/log_instructions.h"

namespace lockstep {

class LogCalls {
 public:
  /// True where the line was one of these. `text` without prefixes.
  bool read(std::string_view text, std::uint32_t line, std::optional<std::int32_t> rank);
  bool empty() const { return processes_.empty() && schedules_.empty() && instructions_.empty(); }
  /// Adds programs; returns how many.
  std::size_t add_programs(std::string_view path, JobIntake& intake);
  /// The last COLL line of each process, in words; for a report that has nothing better.
  std::string last_calls() const;

 private:
  struct Call {
    std::string op{};
    std::uint64_t op_count = 0, count = 0;
    int datatype = 0, redop = 0, root = 0;
    std::uint32_t line = 0;
    std::size_t communicator = 0;
  };
  struct Process {
    int device = 0;
    std::vector<Call> calls{};
    std::vector<std::pair<std::string, int>> communicators{};  ///< address, number of ranks
  };
  struct Identity {
    int rank = -1, ranks = 0;
    std::string id{};
  };
  struct Step {
    bool sends = false;
    char direction = 'F';
    int stage = 0, micro_batch = 0;
    std::uint32_t line = 0;
  };
  bool read_coll(std::string_view text, std::uint32_t line);
  bool read_init(std::string_view text);
  bool read_schedule(std::string_view text, std::uint32_t line, std::optional<std::int32_t> rank);
  std::size_t add_processes(std::string_view path, JobIntake& intake);
  std::size_t add_schedules(std::string_view path, JobIntake& intake);

  std::map<std::string, Process> processes_;                       // by host and pid
  std::map<std::pair<std::string, std::string>, Identity> inits_;  // by process and address of the communicator
  std::map<std::int32_t, std::vector<Step>> schedules_;
  std::map<int, std::int32_t> rank_of_stage_;
  LogInstructions instructions_;
  std::size_t kept_ = 0;
};

}  // namespace lockstep
