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
  // The first function that is known, of the sides of a disagreement or of who waits in a cycle.
  std::string_view function;
  for (const OperationView& operation : finding.operations)
    if (function.empty() && !operation.site.empty()) function = operation.site[0].function;
  for (const WaitFor& waiting : finding.wait_for)
    if (function.empty() && !waiting.operation.site.empty()) function = waiting.operation.site[0].function;
  if (!function.empty()) add(function);
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : identity) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

}  // namespace lockstep
