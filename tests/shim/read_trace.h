// A plain reader of traces for tests, written from FORMAT.md and not from the recorder: it is slow, and stops
// at what is damaged.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/trace_record.h"

namespace lockstep::shim_test {

struct ReadCall {
  trace::CallRecord record{};
  std::uint32_t thread_index = 0;
  std::uint64_t block = 0;
  trace::SecondHalfRecord half{};
  bool has_half = false;
  std::vector<std::uint32_t> requests{};
  std::vector<trace::CountsRecord> counts{};
  trace::CreationRecord creation{};
  bool has_creation = false;
  trace::IssueRecord issue{};
  bool has_issue = false;
  std::string name{};  ///< of an opaque call

  OpKind kind() const { return static_cast<OpKind>(record.kind); }
  bool returned() const { return record.return_ticks != 0; }
};

struct ReadComm {
  trace::CommRecord record{};
  std::vector<std::int32_t> members{};
  std::string name{};
};

struct ReadSite {
  trace::CallSiteRecord record{};
  std::string module{};
};

struct ReadFrame {
  std::uint32_t line = 0;
  std::string file{}, function{};
};

struct ReadTrace {
  trace::FileHeader header{};
  trace::ProcessRecord process{};
  std::string host{}, program{}, run{}, launcher{}, version{}, directory{};
  std::map<std::uint32_t, ReadComm> comms{};
  std::map<std::uint32_t, trace::CommEndRecord> comm_ends{};
  std::map<std::uint32_t, std::pair<std::string, std::uint64_t>> datatypes{};
  std::map<std::uint32_t, std::pair<std::string, std::uint64_t>> redops{};
  std::map<std::uint32_t, ReadSite> sites{};
  std::map<std::uint32_t, std::vector<ReadFrame>> python_sites{};  ///< innermost first
  std::map<std::uint32_t, std::string> modules{};
  std::map<std::uint32_t, std::vector<std::uint64_t>> vectors{};
  std::vector<std::string> notes{};
  std::map<std::uint32_t, std::string> comm_names{};
  std::string library{};
  std::map<std::uint32_t, trace::CommEntry> entries{};  ///< live communicators, by communicator id
  std::vector<ReadCall> calls{};                        ///< in block order
  std::uint64_t first_block = 0, last_block = 0;
  bool gap_in_blocks = false;
  std::vector<std::string> problems{};  ///< what breaks FORMAT.md; empty in every file that libshim writes
};

/// Reads `path`; problems say what is wrong with it.
ReadTrace read_trace(const std::string& path);
/// The same from bytes in memory.
ReadTrace parse_trace(const std::vector<std::byte>& bytes);
/// All .lst files under `directory`, sorted by rank, then by start.
std::vector<std::string> find_traces(const std::string& directory);
/// One call as a line of text.
std::string describe(const ReadTrace& trace, const ReadCall& call);

}  // namespace lockstep::shim_test
