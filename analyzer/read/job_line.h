// One rank's lines of Job JSON (grammar: DESIGN.md, section 7) to its Program.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "read/job_intake.h"

namespace lockstep {

/// The communicators that lines can name.
class LineGroups {
 public:
  struct Group {
    CommIndex comm = kNoComm;
    std::vector<std::int32_t> sorted_members{};  ///< empty = not known
    bool may_contain(std::int32_t rank) const;
  };

  explicit LineGroups(JobIntake& intake) : intake_(intake) {}

  void add(const std::string& name, CommIndex comm, std::span<const std::int32_t> members);
  const Group* find(std::string_view name) const;  ///< nullptr: no such group
  /// The group of this name, made with unknown members at the first call; "world" and its like are all ranks.
  const Group& find_or_make(std::string_view name);
  /// What a point-to-point line without a group means: the only group, or pp, or p2p, else all ranks.
  const Group& for_message();
  /// What a collective without a group means: the only group; all ranks where there is none; nullptr = not clear.
  const Group* for_collective();

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  const Group& world();

  JobIntake& intake_;
  std::unordered_map<std::string, Group, Hash, std::equal_to<>> groups_;
  std::size_t defined_ = 0;  // by add(); the rest was made because a line named it
  std::string first_defined_;
};

/// "WORLD", "world", "MPI_COMM_WORLD", "default_pg": all ranks, unless a group has that name.
bool is_world_name(std::string_view name);

/// Reads the lines of one rank after the other.
///
/// Beyond the grammar it takes: names of calls as libraries spell them (kept in OperationExtra::native_name), '#' lines as
/// remarks, "any" and "?" as peers, `exit N`, the keys members, exclude, native, native_seq, payload and flags, and %XX in values.
/// A shrink with `members` (who stays) or `exclude` (who does not) is a call of those that stay alone, as NCCL has it.
/// A line, or part of a batch, that it cannot read leaves an OpKind::kOpaque operation in its place and marks the program
/// (tail_missing): what was there is not known, so nothing after it proves absence. `group_start` and `group_end` leave no
/// operation: those between them, as those of a batch, share a launch number, from 1. A `wait` without a group has kNoComm:
/// it waits for whatever matches on any communicator. A program ends as exited 0 unless `exit N` says otherwise.
class JobLineReader {
 public:
  JobLineReader(JobIntake& intake, FileWarnings& warnings, LineGroups& groups)
      : intake_(intake), warnings_(warnings), groups_(groups) {}

  void begin(std::int32_t rank, SourceIndex source);
  /// `line` is the line of the file, from 1.
  void read(std::string_view text, std::uint32_t line);
  /// An entry that is no text: counts as a line that cannot be read.
  void read_foreign(std::uint32_t line);
  Program finish();

 private:
  struct Draft;
  bool is_after_exit();
  void read_marker_or_operation(std::string_view text);
  void read_batch(std::string_view text, std::size_t opens);  ///< bytes of "batch["
  void read_exit(std::string_view rest);
  void read_compute(std::string_view text);
  void read_operation(std::string_view text);
  bool read_positions(Draft& draft);
  const LineGroups::Group* find_group(std::string_view word) const;
  bool read_collective(Draft& draft);
  bool read_message(Draft& draft);
  bool read_completion(Draft& draft);
  void read_stream_word(Draft& draft);
  bool read_type(Draft& draft, std::string_view token);
  void read_key(Draft& draft, std::string_view key, std::string_view value);
  void read_flags(Draft& draft, std::string_view value);
  void check_ranks(const Draft& draft, const LineGroups::Group* group);
  void append(Draft& draft);
  void place_shrink(Draft& draft);
  void unreadable(std::string_view text, std::string_view why);
  void warn(std::string_view message);

  JobIntake& intake_;
  FileWarnings& warnings_;
  LineGroups& groups_;
  Program program_;
  std::unordered_map<std::uint32_t, std::uint32_t> shrinks_;  // so far, by the communicator that shrinks
  std::uint32_t index_ = 0;     // of the line in its rank, for messages
  std::uint32_t line_ = 0;      // of the file
  std::uint32_t launches_ = 0;  // numbers given so far
  std::uint32_t launch_ = 0;    // of the group or batch that is open, 0 = none
  std::uint32_t open_groups_ = 0;
  bool exited_ = false;
  bool warned_after_exit_ = false;
};

/// Splits at white space outside [...], or at every white space where the brackets do not close.
std::vector<std::string_view> split_words(std::string_view text);

}  // namespace lockstep
