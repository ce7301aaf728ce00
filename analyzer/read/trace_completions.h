// Waits, tests and probes: which of the calls before them are complete. From the records of one process to the operations of one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "read/trace_calls.h"
#include "read/trace_program.h"
#include "read/trace_requests.h"

namespace lockstep {

class TraceCompletions {
 public:
  TraceCompletions(const TraceNames& names, JobIntake& intake, TraceProgram& result)
      : names_(names), intake_(intake), result_(result), requests_(intake.builder()) {}

  /// The operation at `at` will be completed by a wait for `request`.
  StringIndex open(std::uint64_t request, std::size_t at) { return requests_.open(request, static_cast<std::uint32_t>(at)); }
  /// The newest operation is a call of torch.
  void note_torch_call() { torch_call_ = operations().size(); }

  /// Adds the wait, test or probe of a record. `operation` has kind, site, line and state.
  void add(const trace::CallRecord& call, const CallExtensions& extensions, Operation operation);

  /// Forgets what stood before: the operations were dropped.
  void forget();
  /// At the end of the record: a wait that ended in an exception (a time limit, a partner that is gone) did not see its call complete.
  /// Where the program ends behind it, that is where the rank stood; where it went on, it waited no longer.
  void settle_errors();

 private:
  void add_probe(const trace::CallRecord& call, Operation operation);
  void add_waits(const trace::CallRecord& call, const std::vector<std::uint64_t>& asked, Operation operation);
  bool joins_its_call(const trace::CallRecord& call, std::uint64_t request, const Operation& wait);
  void complete(std::uint64_t request);
  decltype(Program::operations)& operations() { return result_.program.operations; }

  const TraceNames& names_;
  JobIntake& intake_;
  TraceProgram& result_;
  TraceRequests requests_;
  std::size_t torch_call_ = 0;                // operations up to and with the newest call of torch
  std::vector<std::size_t> left_by_error_{};  // waits, and calls with their wait, that ended in an exception
};

}  // namespace lockstep
