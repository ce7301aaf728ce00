// Runs the MPI programs of this folder under each implementation that this machine has.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "run_host.h"

namespace lockstep::shim_test {

struct Implementation {
  std::string name;                   ///< "openmpi": the suffix of the programs
  std::vector<std::string> launcher;  ///< mpirun with what it needs here; "-n N" follows
};
inline void PrintTo(const Implementation& implementation, std::ostream* out) { *out << implementation.name; }

inline std::vector<Implementation> implementations() {
  std::vector<Implementation> found;
  const std::string names = LOCKSTEP_MPI_IMPLEMENTATIONS;
  if (names.find("openmpi") != std::string::npos) {
    found.push_back({"openmpi", {LOCKSTEP_OPENMPI_RUN, "--allow-run-as-root", "--oversubscribe"}});
  }
  if (names.find("mpich") != std::string::npos) found.push_back({"mpich", {LOCKSTEP_MPICH_RUN}});
  return found;
}

/// `program` is its name without suffix; `words` its arguments. The variables reach the ranks, the recorder
/// is not in the launcher.
inline HostRun run_mpi(const Implementation& implementation, int ranks, const std::string& program,
                       const std::vector<std::string>& words,
                       const std::vector<std::pair<std::string, std::string>>& env, int timeout_s = 90) {
  std::vector<std::string> command = implementation.launcher;
  command.insert(command.end(), {"-n", std::to_string(ranks), "env"});
  for (const auto& [name, value] : env) command.push_back(name + "=" + value);
  command.push_back(std::string(LOCKSTEP_MPI_BIN) + "/" + program + "." + implementation.name);
  command.insert(command.end(), words.begin(), words.end());
  HostOptions options;
  options.timeout_s = timeout_s;
  options.is_launcher = true;
  return run_host(command, options);
}

}  // namespace lockstep::shim_test
