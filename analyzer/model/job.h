// A Job: ranks, communicators, and for every rank its program. Every source yields one; nothing after reading knows which.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/huge_pages.h"
#include "base/ids.h"
#include "model/operation.h"

namespace lockstep {

/// Whose blocking rules a Job runs under.
enum class Library : std::uint8_t { kUnknown = 0, kNccl = 1, kMpi = 2, kTorch = 3 };
std::string_view library_name(Library library);

/// Members that are known to have made different calls although their records no longer hold them: somewhere in `from` ... `to`
/// (positions, both included). The calls before `from` are known to agree.
struct LostDifference {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::vector<std::vector<std::int32_t>> parties{};  ///< job ranks that agree with each other up to `to`; largest first
};

struct Communicator {
  std::string id{};    ///< equal on all members
  std::string name{};  ///< what a report calls it; need not be unique
  std::vector<std::int32_t> members{};  ///< job ranks in order of communicator rank
  std::optional<LostDifference> lost_difference{};
  bool members_known = true;  ///< false: the source does not list them; `members` are those seen calling
  Library library = Library::kUnknown;  ///< whose it is, where a job uses several; kUnknown: the job's
};

/// One stack frame of the caller: "stage2.py", "get_grad_norm_direct", 1509. Missing parts are empty or 0.
struct Frame {
  std::string file{};
  std::string function{};
  std::uint32_t line = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};

/// Where a call was made: frames from the innermost outwards; never empty for a site other than 0.
struct CallSite {
  std::vector<Frame> frames{};
  friend bool operator==(const CallSite&, const CallSite&) = default;
};

enum class EndKind : std::uint8_t {
  kUnknown = 0,  ///< the record stops; nothing says what became of the rank
  kExited = 1,   ///< the process ended by itself, with `status`
  kKilled = 2,   ///< ended by signal `status`
  kRunning = 3,  ///< still there when the evidence was taken
};

struct ProgramEnd {
  EndKind kind = EndKind::kUnknown;
  int status = 0;  ///< kStatusUnknown: the source shows that the calls end here, not how the process did
  static constexpr int kStatusUnknown = -1;
  friend bool operator==(const ProgramEnd&, const ProgramEnd&) = default;
};

/// Where a rank ran, as far as the source says.
struct Place {
  std::string host{};
  std::int64_t pid = 0;  ///< 0 = not known
  std::optional<int> local_rank{};
  std::string device{};
};

/// Collectives that a rank is known to have made on a communicator before the first one of its record.
struct EarlierCalls {
  CommIndex comm = kNoComm;
  std::uint32_t calls = 0;
  friend bool operator==(const EarlierCalls&, const EarlierCalls&) = default;
};

using OperationTable = std::vector<Operation, HugePageAllocator<Operation>>;

/// All that one rank did, in order.
struct Program {
  std::int32_t rank = 0;  ///< rank in the job
  OperationTable operations{};
  ProgramEnd end{};
  Place place{};
  SourceIndex source{};
  bool head_missing = false;  ///< calls before the first are lost (a ring that wrapped)
  std::vector<EarlierCalls> earlier{};  ///< one a communicator; those not listed: none. Operation::seq counts from there
  std::optional<double> last_event{};   ///< when the rank last entered or left a call, in seconds since 1970
  bool tail_missing = false;  ///< calls after the last may exist (cut file, unreadable lines): absence proves nothing
  std::size_t placed = 0;     ///< operations before the first gap; set by JobBuilder

  /// The operations whose positions are known: what is matched and replayed. Behind a gap there is only more to read.
  std::span<const Operation> placed_operations() const { return std::span(operations).first(placed); }
};

/// Which run of which launch this is, and what else was found beside it.
struct RunInfo {
  std::string name{};  ///< may be empty
  int attempt = 0;     ///< restart count of the launcher
  std::vector<std::string> others{};  ///< runs in the same directory that were not read
};

/// What a report must say about how good its input was.
struct InputQuality {
  std::optional<std::size_t> ranks_expected{};  ///< known size of the job, from members or from the source
  bool complete = true;                       ///< nothing was cut, unreadable or dropped
  std::vector<std::string> warnings{};          ///< with file and line or offset; at most kMaxWarnings, then a count
  static constexpr std::size_t kMaxWarnings = 50;
};

/// Immutable once built (JobBuilder::build). Programs are in order of job rank, one for each rank that left a record.
class Job {
 public:
  Job();
  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;
  ~Job();

  std::span<const Program> programs() const;
  std::span<const Communicator> communicators() const;
  const Program& program(ProgramIndex index) const { return programs()[to_size(index)]; }
  const Communicator& communicator(CommIndex index) const { return communicators()[to_size(index)]; }

  /// kNoProgram for a rank that left no record.
  ProgramIndex program_of_rank(std::int32_t rank) const;
  /// End of a rank that the source states although it left no calls; kUnknown where it says nothing.
  ProgramEnd end_of_rank(std::int32_t rank) const;

  std::string_view text(StringIndex index) const;
  const CallSite& site(SiteIndex index) const;  ///< an empty CallSite for 0
  std::size_t site_count() const;
  const OperationExtra& extra(const Operation& operation) const;  ///< a default one where it has none
  std::string_view datatype(DatatypeIndex index) const;
  std::string_view redop(RedopIndex index) const;
  std::string count_text(Count count) const;  ///< "1024", "V*h/tp", "" for none
  const std::string& source(SourceIndex index) const;

  Library library() const;
  /// Some communicator is of another library than the job: a program of NCCL that makes calls of MPI, too.
  bool mixes_libraries() const;
  /// Whose rules hold for calls on the communicator; the job's for kNoComm.
  Library library_of(CommIndex comm) const;
  /// Version of the library as NCCL codes it (22809 = 2.28.9); 0 = not known. The lowest where ranks differ.
  int library_version() const;
  /// NCCL_LAUNCH_ORDER_IMPLICIT as every rank had it: collectives of one device start in the order in which they were issued.
  bool implicit_launch_order() const;
  const RunInfo& run() const;
  const std::string& name() const { return run().name; }
  const InputQuality& quality() const;
  std::size_t operation_count() const;
  std::uint64_t earlier_call_count() const;  ///< sum of Program::earlier

 private:
  friend class JobBuilder;
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace lockstep
