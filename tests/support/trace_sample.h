// Writes trace files in memory, as the recorder would: for tests of the reader, seeds of its fuzz target, and benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/trace_record.h"

namespace lockstep::testing {

struct TraceSampleOptions {
  int rank = 0;
  int ranks = 1;
  std::uint32_t blocks = 4;
  std::uint32_t block_bytes = 4096;  ///< 64 records, one of them the block's own
  std::string run = "sample-1.r0";
  std::uint64_t start_unix_ns = 1'700'000'000'000'000'000ULL;
};

/// What is not given is absent: no root, no datatype, returned at once.
struct SampleCall {
  OpKind kind = OpKind::kBarrier;
  std::uint32_t comm = 1;
  std::uint64_t count = 0;
  std::uint16_t datatype = 0;  ///< 1 = MPI_FLOAT, 2 = MPI_INT
  std::uint16_t redop = 0;     ///< 1 = MPI_SUM, 2 = MPI_MAX
  std::int32_t peer = -1;
  std::uint32_t tag = 0;
  std::uint32_t request = 0;
  std::uint8_t flags = 0;
  bool returned = true;
};

class TraceSample {
 public:
  explicit TraceSample(const TraceSampleOptions& options);

  /// A communicator besides the world, which is number 1. `members` are world ranks.
  std::uint32_t add_comm(const std::vector<std::int32_t>& members, std::uint32_t creation, const std::string& name);
  /// One of NCCL, with one rank that is known: this one. Known to others under `alias` too, unless that is 0.
  std::uint32_t add_nccl_comm(std::uint64_t identity, std::int32_t nranks, std::uint32_t parent, OpKind kind, std::uint64_t alias = 0);
  void add(const SampleCall& call);
  /// A call with a record behind it: what NCCL's calls have.
  void add(const SampleCall& call, const trace::IssueRecord& issue);
  void add(const SampleCall& call, const trace::CreationRecord& creation);
  /// An all_to_all with these counts for each member of the world; those that do not fit into the call get a record of their own.
  void add_all_to_all(const std::vector<std::uint64_t>& sent, const std::vector<std::uint64_t>& received);
  void add_opaque(const std::string& function);
  /// MPI_Finalize on the world, and an exit with `status`.
  void finish(int status = 0);

  trace::FileHeader& header() { return header_; }
  std::string bytes() const;

 private:
  struct Comm {
    trace::CommEntry entry{};
  };
  template <class Record>
  void put(Record record);
  void put_block();
  void put_counts(const std::vector<std::uint64_t>& counts, std::uint8_t side);
  template <class Record>
  void add_side(Record record, trace::SideKind kind, const std::string& tail);
  void advance(trace::CallRecord& record);
  void add_call(const SampleCall& call, std::uint8_t extensions);

  TraceSampleOptions options_;
  trace::FileHeader header_;
  std::string side_;
  std::string ring_;
  std::vector<Comm> comms_;
  std::vector<std::uint32_t> sends_, receives_;  // by peer
  std::uint64_t block_ = 0;
  std::uint32_t vectors_ = 0;
  std::uint32_t record_ = 0;   // next one in the block
  std::uint64_t ticks_ = 1'000'000;
};

}  // namespace lockstep::testing
