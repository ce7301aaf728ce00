// What the lines of logs say about a job, beside the calls that a Job holds: each piece with its file and line. Readers fill it,
// the diagnosis weighs it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/job.h"

namespace lockstep {

enum class ReportedKind : std::uint8_t {
  kWaits,     ///< a rank waits in a call, says its watchdog
  kProgress,  ///< the last call that a rank enqueued and completed on a group
  kCalls,     ///< a rank begins a call (fingerprints at log level INFO)
  kSide,      ///< one rank's side of a difference that a library found
  kDiffers,   ///< a library says that ranks differ; both sides are in the text
  kAbsent,    ///< a coordinator names the ranks that did not come
  kStack,     ///< a rank's stack: `op` is the innermost collective in it
  kCount,     ///< so many ranks (`ranks` where named) launched so many calls
  kEvent,     ///< something else went wrong; `finding_class` says what
  kHint,      ///< weak: worth reading, decides nothing
};

struct ReportedEvent {
  ReportedKind kind = ReportedKind::kHint;
  std::uint32_t file = 0;  ///< index into ReportedEvidence::files
  std::uint32_t line = 0;  ///< from 1
  std::optional<std::int32_t> rank{};   ///< job rank, as far as the line tells
  std::string text{};                   ///< the telling part of the line, as it stood there; of a stack its frame
  std::string caller{};                 ///< of a stack: the user's frame that it comes from, "train.py:40 in step"
  std::string group{};                  ///< process group as the line names it; empty = it does not
  std::string op{};                     ///< as spelt there
  std::string shape{};
  std::string datatype{};               ///< as spelt there
  std::optional<std::int64_t> seq{}, elements_in{}, elements_out{};
  std::optional<std::int64_t> enqueued{}, completed{};
  std::vector<std::int32_t> ranks{};    ///< kAbsent, kCount: those named
  std::int64_t count = 0;               ///< kCount: how many ranks
  std::string_view family{};            ///< whose line it is: "torch", "jax", "horovod" (log_grammars.cc); static text
  std::string finding_class{};          ///< kEvent
  bool proves = false;                  ///< kEvent: by itself reason enough for a job to stop
  bool of_node = false;                 ///< kEvent: a host says that something is wrong with itself: a device, a link, memory
  std::string host{};                   ///< kEvent: that the line is of, as far as it says so
  int day = 0;                          ///< 100 * month + day, as torch writes it before its own lines; 0 = not told
};

/// Where a rank ran, as the lines say.
struct ReportedPlace {
  Place place{};
  std::string pod{};
};

/// A line of a log that says how many ranks the job has.
struct StatedSize {
  std::int64_t ranks = 0;
  std::uint32_t file = 0;
  std::uint32_t line = 0;
};

/// Two pieces of evidence that cannot both be of one run of one job, found while they were read. Nothing is averaged: both are
/// told, and what rests on them decides nothing.
struct ReportedContradiction {
  std::string text{};                 ///< a sentence with both places
  std::vector<std::int32_t> ranks{};  ///< whose record is in doubt
};

struct ReportedEvidence {
  std::vector<std::string> files{};
  std::vector<ReportedEvent> events{};
  std::map<std::int32_t, ReportedPlace> places{};  ///< by rank
  std::vector<ReportedContradiction> contradictions{};
  std::optional<StatedSize> size{};  ///< the largest that a line states
  std::size_t dropped = 0;  ///< events beyond what is kept
  bool empty() const { return files.empty(); }
};

}  // namespace lockstep
