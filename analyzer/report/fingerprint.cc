// Fingerprints of findings.
#include "report/fingerprint.h"

#include <fmt/format.h>

#include <cstdint>

namespace lockstep {

std::string finding_fingerprint(const Finding& finding) {
  std::string identity = finding.finding_class;
  const auto add = [&identity](std::string_view part) {
    identity += '\n';
    identity += part;
  };
  add(finding.communicator ? finding.communicator->name : "");
  add(finding.position ? finding.position->op : "");
  for (const OperationView& operation : finding.operations)
    if (!operation.site.empty()) {
      add(operation.site[0].function);
      break;
    }
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : identity) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

}  // namespace lockstep
