// Calls that a log prints one by one: NCCL's COLL lines (NCCL_DEBUG_SUBSYS=COLL) and printed pipeline schedules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
  /// Takes over what another file of the job printed. Processes are told apart by host and pid.
  void merge(LogCalls&& other, std::string_view path);
  /// Adds programs; returns how many.
  std::size_t add_programs(std::string_view path, JobIntake& intake);
  /// The last COLL line of each process, in words; for a report that has nothing better.
  std::string last_calls() const;
  std::uint32_t last_line() const;  ///< of the last COLL line
  /// By process, in the words of last_calls: its rank (-1: the log does not say), its line, and how many calls it printed.
  struct LastCall {
    std::int32_t rank = -1;
    std::uint32_t line = 0;
    std::size_t calls = 0;
    std::string text{};
  };
  std::vector<LastCall> last_by_process() const;
  /// Where the ranks of the largest communicator run, as the lines of initialization say.
  std::map<std::int32_t, ReportedPlace> places() const;

 private:
  struct Call {
    std::uint64_t op_count = 0, count = 0;
    std::uint32_t line = 0;
    std::uint32_t communicator = 0;
    std::int32_t root = 0;
    std::uint16_t op = 0;  ///< index into op_names_
    std::uint8_t datatype = 0, redop = 0;
  };
  struct Process {
    int device = -1;  ///< -1: the lines do not say
    std::string path{};  ///< file of the lines
    std::vector<Call> calls{};
    std::vector<std::pair<std::string, int>> communicators{};  ///< address, number of ranks
  };
  struct Identity {
    int rank = -1, ranks = 0;
    int device = -1;
    std::string id{};
    std::string parent{}, split{};  ///< of a split whose line has no id: the parent's address, "split 2 color 0"
  };
  /// A communicator as one process has it. Without an id: the how manieth of its size there.
  struct Member {
    int ranks = 0;
    std::string id{};
    std::size_t index = 0;
  };
  struct Step {
    bool sends = false;
    char direction = 'F';
    int stage = 0, micro_batch = 0;
    std::uint32_t line = 0;
  };
  bool read_coll(std::string_view text, std::uint32_t line);
  /// In the largest communicator of the process whose initialization was logged; -1: none that holds all processes was.
  std::int32_t rank_of(const std::string& key) const;
  std::string id_of(const std::string& key, const Identity& identity) const;  ///< empty where no line tells it
  std::vector<Member> members_of(const std::string& key, const Process& process) const;  ///< in the order of `communicators`
  /// Sizes of communicators that only their order would join across processes, where that order cannot be right: more processes
  /// than ranks, or other first calls. A job with tensor and data parallel groups of one size looks like that.
  std::set<int> sizes_not_told_apart() const;
  bool read_trace_call(std::string_view text, std::uint32_t line);
  std::uint16_t op_index(std::string_view name);
  std::uint32_t communicator_index(Process& process, const std::string& address, int ranks);
  bool read_init(std::string_view text);
  bool read_schedule(std::string_view text, std::uint32_t line, std::optional<std::int32_t> rank);
  std::size_t add_processes(std::string_view path, JobIntake& intake);
  std::size_t add_schedules(std::string_view path, JobIntake& intake);

  std::map<std::string, Process> processes_;                       // by host and pid
  std::map<std::pair<std::string, std::string>, Identity> inits_;  // by process and address of the communicator
  std::map<std::int32_t, std::vector<Step>> schedules_;
  std::map<int, std::int32_t> rank_of_stage_;
  LogInstructions instructions_;
  std::vector<std::string> op_names_;
  std::size_t kept_ = 0;
  bool full_ = false;  // lines were left out
};

}  // namespace lockstep
