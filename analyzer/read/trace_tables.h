// The frame and the side records of one trace file (schemas/FORMAT.md), checked: everything but the ring. No field is trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lockstep/trace_record.h"
#include "model/job.h"

namespace lockstep {

/// What a file knows of one of its communicators.
struct TraceComm {
  trace::CommRecord record{};  ///< record.comm 0: this id has no record
  std::vector<trace::RankRange> ranges{};
  std::string name{};
  /// How far the process came on it, and where it can be compared: the table entry, or the record of its end.
  bool has_state = false;
  std::uint32_t flags = 0;  ///< CommEntryFlags
  trace::Checkpoint now{};
  std::vector<trace::Checkpoint> checkpoints{};  ///< by calls, ascending; `now` is not among them

  bool known() const { return record.comm != 0; }
  /// Its calls can be matched with those of other members.
  bool comparable() const {
    return known() && record.identity != 0 && (record.flags & (trace::kCommInter | trace::kCommForeignMembers)) == 0 &&
           (flags & trace::kCommConcurrent) == 0;
  }
};

struct TraceNamed {
  std::string name{};
  std::uint64_t hash = 0;
  std::uint32_t bytes = 0;
};

/// Per-member counts that calls name by the id of the vector: `values` numbers at `offset` of the file, which holds them.
struct TraceVector {
  std::uint64_t offset = 0;
  std::uint32_t values = 0;
};

struct TraceModule {
  std::string path{};
  std::string build_id{};  ///< raw bytes
};

struct TraceSite {
  std::uint32_t module = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t address = 0;
  std::vector<Frame> python{};  ///< innermost first; empty = none recorded
};

/// Tables are indexed by the ids of the file; entry 0 and those without a record are empty.
struct TraceTables {
  std::string path{};
  std::string_view contents{};
  trace::FileHeader header{};  ///< only what lies before `unused`
  trace::ProcessRecord process{};
  std::string host{}, program{}, run{}, launcher{}, library{};
  std::vector<TraceComm> comms{};
  std::vector<TraceNamed> datatypes{};
  std::vector<TraceNamed> redops{};
  std::vector<TraceSite> sites{};
  std::vector<TraceModule> modules{};
  std::vector<TraceVector> vectors{};
  std::vector<std::string> notes{};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> aliases{};  ///< identity of a communicator as other members have it, and as this file has
  int nccl_version = 0;                 ///< as NCCL codes it: 22809 = 2.28.9; 0 = not known
  bool implicit_launch_order = false;   ///< NCCL_LAUNCH_ORDER_IMPLICIT is set and not 0
  bool uses_device = false;             ///< took a GPU
  bool is_copy = false;       ///< its process may be alive by now without writing it
  bool cut = false;           ///< shorter than it was made
  bool side_damaged = false;  ///< the side area could not be walked to its end

  std::int32_t job_rank() const { return header.job_rank >= 0 ? header.job_rank : process.env_rank; }
  std::int32_t job_ranks() const { return header.job_ranks > 0 ? header.job_ranks : process.env_ranks; }
  bool has_state(trace::StateBits bit) const { return (header.state & bit) != 0; }
};

/// Whether a file begins as a trace does. A page of zeros is none: nothing says that it is.
bool looks_like_trace(std::string_view head);

/// `contents` must outlive the tables. kUnsupported, naming the version needed, for a file of a later format; kMalformed
/// where the frame does not fit the file.
Result<TraceTables> read_trace_tables(std::string_view path, std::string_view contents);

/// Ranks of ranges in order; nothing where they are not `expected` ranks or too many to be true.
std::optional<std::vector<std::int32_t>> expand_ranges(const std::vector<trace::RankRange>& ranges, std::int32_t expected);

}  // namespace lockstep
