// Directories of traces: runs below them, the newest, and files that lie elsewhere (schemas/FORMAT.md, section 6).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct TraceDirectory {
  std::string run{};                   ///< name of the run's directory; empty: the files lie in the directory itself
  std::vector<std::string> files{};    ///< of that run, sorted
  std::vector<std::string> others{};   ///< names of the other runs, newest first
  std::vector<std::string> warnings{}; ///< pointer files that lead nowhere
};

/// The newest run in `path`: a directory of runs, or the directory of one. Nothing where it holds neither. "Newest" is by the
/// start times in the names of the files, which copying keeps.
std::optional<TraceDirectory> find_newest_run(const std::string& path);

}  // namespace lockstep
