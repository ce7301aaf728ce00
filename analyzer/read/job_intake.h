// Where all readers put what they read: a JobBuilder plus the rules for joining files that overlap or contradict.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/job_builder.h"
#include "model/reported.h"

namespace lockstep {

/// An open input as a reader sees it.
struct EvidenceFile {
  std::string_view path;
  std::string_view contents;  ///< MappedFile::kPaddingBytes zero bytes follow
  bool is_copy = false;       ///< taken at some time before: what its process does now says nothing about it
};

/// Members as short text: "0-3", "0,2,4"; a long irregular list becomes its ends, its length and a hash.
/// Equal lists give equal text, so it serves as an identity.
std::string members_text(std::span<const std::int32_t> members);

/// Leaves the first of each rank in `members`; true: some came twice.
bool drop_repeated(std::vector<std::int32_t>& members);

/// Collects the programs and communicators of one Job from any number of files. Not for use from two threads.
class JobIntake {
 public:
  JobBuilder& builder() { return builder_; }

  /// Takes over what one source says about program.rank. Where a source before gave that rank too: an equal program is
  /// dropped with a warning; of two that differ the longer one stays and the Job is marked incomplete (the rank as
  /// well, unless the shorter one is the beginning of the longer: then it is an earlier snapshot).
  void add_program(Program program);

  /// As JobBuilder::communicator, but warns when it is known with other members. `where` is "FILE:LINE".
  CommIndex communicator(std::string_view id, std::string_view name, std::span<const std::int32_t> members,
                         std::string_view where);

  /// The communicator of all ranks, for sources that use it without listing it. Its members are the ranks given to
  /// add_to_world(), unless a source lists them; known at finish().
  CommIndex world();
  /// Ranks that the job is known to have, by their records or as members; their number is what the report expects unless
  /// a source states it.
  void add_to_world(std::span<const std::int32_t> ranks);
  void set_ranks_expected(std::size_t ranks);
  static constexpr std::string_view kWorldName = "WORLD";

  /// The first source that knows the library decides; another answer is a warning.
  void set_library(Library library, std::string_view path);

  /// The operation's extra for a label and a native name, one for all operations that have the same: millions of
  /// operations share a few. 0 when both are empty.
  std::uint32_t shared_extra(std::string_view label, std::string_view native_name);

  /// Whether native call sites may be looked up in the programs that a trace names; true unless it was asked not to.
  void set_native_lookup(bool allowed) { native_lookup_ = allowed; }
  bool native_lookup() const { return native_lookup_; }

  /// What logs say beside calls.
  ReportedEvidence& reported() { return reported_; }

  std::size_t program_count() const { return program_count_; }
  Job finish() &&;

 private:
  bool same_operation(const Operation& left, const Operation& right);

  JobBuilder builder_;
  ReportedEvidence reported_;
  std::map<std::pair<StringIndex, StringIndex>, std::uint32_t> shared_extras_;
  std::vector<std::int32_t> world_ranks_;
  void compact_world();

  std::size_t compacted_ = 0;  // world_ranks_ up to here are sorted and different
  bool world_used_ = false;
  bool native_lookup_ = true;
  bool expected_stated_ = false;
  std::size_t program_count_ = 0;
};

/// Warnings of one file: the first kMaxShown as they are, the rest as a count. A file of nothing but damage must not
/// crowd out what the other files have to say.
class FileWarnings {
 public:
  static constexpr std::size_t kMaxShown = 16;
  FileWarnings(JobBuilder& builder, std::string_view path) : builder_(builder), path_(path) {}
  FileWarnings(const FileWarnings&) = delete;
  FileWarnings& operator=(const FileWarnings&) = delete;
  ~FileWarnings();  ///< says how many were not shown

  /// "PATH:LINE: message"; line 0 = the file as a whole.
  void warn(std::uint64_t line, std::string_view message);

 private:
  JobBuilder& builder_;
  std::string path_;
  std::size_t count_ = 0;
  std::uint64_t last_line_ = 0;
};

/// Text from an input, cut to a length that fits into a message.
std::string excerpt(std::string_view text);

}  // namespace lockstep
