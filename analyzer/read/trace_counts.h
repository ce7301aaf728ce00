// Counts for each member, in the records of one process.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "model/job_builder.h"
#include "read/trace_bytes.h"
#include "read/trace_calls.h"
#include "read/trace_program.h"
#include "read/trace_tables.h"

namespace lockstep {

/// Gives operations their vectors of counts; equal vectors are held once.
class TraceCounts {
 public:
  TraceCounts(const TraceTables& tables, const TraceNames& names, JobBuilder& builder)
      : tables_(tables), names_(names), builder_(builder), bytes_(tables.contents) {}

  /// Vectors that all members must share, as an all_gather_v's.
  void add_shared(const CallExtensions& extensions, Operation& operation);
  /// Of a gather or scatter with counts for each member, the root has them all and the others their own; of an all_to_all everyone has both.
  void add_pairwise(const trace::CallRecord& call, const CallExtensions& extensions, const TraceCommView& view, Operation& operation);

 private:
  std::uint32_t shared_extra(const trace::CountsRecord& record);
  std::uint32_t pairwise_extra(const trace::CountsRecord& first, const trace::CountsRecord* second);
  bool read_counts(const trace::CountsRecord& record, std::vector<std::uint64_t>& counts) const;

  const TraceTables& tables_;
  const TraceNames& names_;
  JobBuilder& builder_;
  const TraceBytes bytes_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>, std::uint32_t> shared_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>, std::uint32_t> pairwise_;
};

}  // namespace lockstep
