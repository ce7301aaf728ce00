// Puts a Job together: interning, communicator identity, and the numbers that need the whole program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "model/job.h"

namespace lockstep {

/// Readers and plan expansion fill one; `build` hands out the Job. Not for use from two threads.
class JobBuilder {
 public:
  JobBuilder();
  ~JobBuilder();
  JobBuilder(JobBuilder&&) noexcept;
  JobBuilder& operator=(JobBuilder&&) noexcept;

  /// The communicator of this identity, made at the first call. `name` and `members` are taken from the first caller;
  /// members as job ranks in order of communicator rank (an empty list = not known, collected from the callers).
  CommIndex communicator(std::string_view id, std::string_view name, std::span<const std::int32_t> members);
  const Communicator& communicator(CommIndex index) const;
  /// Names a communicator later than it was made.
  void rename(CommIndex index, std::string_view name);
  /// States the members of a communicator that was made before they were known.
  void set_members(CommIndex index, std::span<const std::int32_t> members);

  /// Whose the communicator is, where the job uses several libraries.
  void set_library(CommIndex index, Library library);
  void set_lost_difference(CommIndex index, LostDifference difference);

  /// The program of a job rank, made empty at the first call. The reference is valid until the next call of program().
  Program& program(std::int32_t rank);
  bool has_program(std::int32_t rank) const;
  void set_end(std::int32_t rank, ProgramEnd end);  ///< also for a rank without a program

  StringIndex intern(std::string_view text);
  std::string_view text(StringIndex index) const;
  SiteIndex site(const CallSite& site);
  SourceIndex source(std::string_view path);
  const std::string& source_path(SourceIndex index) const;
  /// False and index 0 once 65,535 different names were seen: hostile input.
  DatatypeIndex datatype(std::string_view name);
  RedopIndex redop(std::string_view name);
  /// Attaches rare data; returns the index for Operation::extra.
  std::uint32_t extra(OperationExtra extra);
  OperationExtra& extra_of(Operation& operation);  ///< makes one where there is none

  void set_library(Library library);
  Library library() const;
  void set_library_version(int code);          ///< Job::library_version
  void set_implicit_launch_order(bool holds);  ///< Job::implicit_launch_order
  void set_name(std::string_view name);
  void set_attempt(int attempt);
  void add_other_run(std::string_view name);  ///< found beside this one, not read
  void set_ranks_expected(std::size_t ranks);
  /// Keeps the first kMaxWarnings and counts the rest.
  void warn(std::string message);
  void set_incomplete();  ///< something was cut, dropped or unreadable

  /// Sorts programs by rank, numbers collectives per (rank, communicator), fills members that were not known.
  Job build() &&;

 private:
  std::unique_ptr<Job::Data> data_;
  struct Interning;
  std::unique_ptr<Interning> interning_;
};

}  // namespace lockstep
