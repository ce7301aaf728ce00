// A Job that a test can still change: plain vectors of calls, turned into a Job or into Job JSON at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/job.h"

namespace lockstep::testing {

struct SketchComm {
  std::string name{};
  std::vector<std::int32_t> members{};  ///< job ranks in order of communicator rank
  Library library = Library::kUnknown;  ///< where it is not the job's
};

struct SketchOp {
  OpKind kind = OpKind::kUnknown;
  int comm = -1;                ///< index into JobSketch::communicators; -1 = none
  std::int32_t peer = kNoPeer;  ///< root or partner, a job rank
  std::string datatype{};
  std::string count{};  ///< digits = a number, else a symbol; empty = none
  std::string redop{};
  std::string payload{};
  std::string stream{};
  std::string handle{};
  std::string color{};
  std::string function{};  ///< call site; empty = not known
  std::vector<std::uint64_t> counts{};
  std::uint32_t tag = kNoTag;
  std::uint32_t launch = 0;  ///< as Operation::launch; bracketed groups have both the brackets and a launch
  OpState state = OpState::kUnknown;
  friend bool operator==(const SketchOp&, const SketchOp&) = default;
};

struct JobSketch {
  Library library = Library::kUnknown;
  std::vector<SketchComm> communicators{};
  std::vector<std::vector<SketchOp>> programs{};  ///< by rank
  std::vector<ProgramEnd> ends{};                 ///< by rank
};

Job build_job(const JobSketch& sketch);

/// The call as a line of Job JSON, without batch brackets: "all_reduce mp f32[1] redop=sum".
std::string op_line(const JobSketch& sketch, const SketchOp& op);

/// The whole sketch in the portable form, one line per call, so that a failure can be kept and handed to
/// `lockstep check`.
std::string to_job_json(const JobSketch& sketch);

}  // namespace lockstep::testing
