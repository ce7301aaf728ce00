// The one way in: from the paths of a command line to a Job, whatever the files are.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "model/job.h"
#include "model/reported.h"
#include "read/formats.h"

namespace lockstep {

struct LoadOptions {
  unsigned jobs = 1;          ///< threads that parse files, for formats whose files can be parsed by themselves
  ReadProgress progress{};    ///< empty: nobody wants to know
  bool native_lookup = true;  ///< look native call sites up in the program files of this machine
};

/// Reads `paths` into one Job. Each file is recognised by its content; "-" is standard input; a directory stands for the
/// files in it and the newest run of traces below it (see trace_directory.h; no other subdirectories). The result does not depend on the order of the paths.
///
/// A file that cannot be used is a warning of the Job (InputQuality), as are contradictions between files; the rest is used.
/// kUnreadable, naming each file and why, if no file could be used (kUnsupported, kMalformed where all agree on that).
Result<Job> load_job(std::span<const std::string> paths, const LoadOptions& options = {});

/// All that the files say: the Job of their calls, which may have no program, and what logs report beside it.
struct LoadedEvidence {
  Job job{};
  ReportedEvidence reported{};
};
Result<LoadedEvidence> load_evidence(std::span<const std::string> paths, const LoadOptions& options = {});

}  // namespace lockstep
