// One PyTorch Flight Recorder dump as it stands in its file: the calls of one process in order, and what it says about its
// process groups. Knows nothing of the other ranks. Format: torch/csrc/distributed/c10d/FlightRecorder.hpp, 2.0 to 2.11.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "read/formats.h"

namespace lockstep {

/// A process group as one dump names it.
struct FlightGroup {
  std::string name{};
  std::string description{};              ///< "default_pg", "TENSOR_MODEL_PARALLEL_GROUP"; empty = none
  std::vector<std::int32_t> members{};    ///< job ranks in order of group rank; empty = not in the dump
  std::optional<std::int64_t> id{};       ///< number of the group in its process (pg_id)
  std::int32_t self = -1;                 ///< the dumping rank's place in it, as its messages tell
  bool has_messages = false;
};

/// A row of pg_status: numbers of the last call, from 1; -1 = none. Collectives and messages are counted together there.
struct FlightStatus {
  std::int64_t id = 0;
  std::int64_t last_enqueued = -1;
  std::int64_t last_completed = -1;
};

/// What a call's Operation has no room for.
struct FlightCall {
  std::uint32_t seq = 0;    ///< number in its group as the dump has it, from 1: of collectives, or of messages; 0 = not given
  std::uint32_t group = 0;  ///< index into FlightDump::groups
};

struct FlightDump final : ParsedEvidence {
  std::string path{};
  std::string version{};
  std::vector<FlightGroup> groups{};
  std::vector<FlightStatus> status{};
  /// In order; `comm` is not set yet, `peer` is a group rank, `site` and `datatype` are places in the tables below.
  OperationTable operations{};
  std::vector<FlightCall> calls{};        ///< by operation
  std::vector<CallSite> sites{CallSite{}};
  std::vector<std::string> datatypes{std::string{}};
  struct InFlight {
    std::uint32_t operation = 0;
    std::int64_t created_ns = 0;
  };
  std::vector<InFlight> in_flight{};      ///< the first kMostInFlight calls that had not completed
  static constexpr std::size_t kMostInFlight = 32;
  /// all_to_all with other numbers of elements in and out.
  struct Uneven {
    std::uint32_t operation = 0;
    std::uint64_t out = 0;
  };
  std::vector<Uneven> uneven{};
  std::int64_t first_record = 0;  ///< above 0: the ring wrapped, or completed calls were left out
  std::int64_t last_ns = 0;       ///< the latest time in it, since 1970
  std::size_t entries = 0;
  std::size_t unknown_calls = 0;  ///< of names that are not known
  std::string unknown_name{};     ///< the first
  bool timed_out = false;         ///< the watchdog gave a call up
  /// gloo (torch 2.9 and later): no call is ever marked as completed; what was carried out, with success or not, is retired, and
  /// taken as completed.
  bool retires_when_done = false;
  bool last_failed = false;       ///< so found when the dumps were joined: its last call was given up, or other dumps are older
  bool has_unrecorded = false;    ///< gloo: messages were sent between its calls, of which there are no entries
  std::vector<std::int32_t> others{};  ///< ranks that the job has, of a group without a name
  bool complete = true;           ///< false: the file breaks off
  std::vector<std::string> warnings{};
};

bool looks_like_flight_pickle(std::string_view head);
bool looks_like_flight_json(std::string_view head);

/// An Error where no entry and no group could be read: kMalformed with the offset, kUnsupported for a pickle that is no plain
/// data. A file that breaks off gives what it holds.
Result<std::unique_ptr<ParsedEvidence>> parse_flight_pickle(const EvidenceFile& file);
Result<std::unique_ptr<ParsedEvidence>> parse_flight_json(const EvidenceFile& file);

}  // namespace lockstep
