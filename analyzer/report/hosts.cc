// See the header.
#include "report/hosts.h"

#include "report/printable.h"

namespace lockstep {

std::string report_hosts(const Report& report) {
  std::string text;
  if (report.action != Action::kInspectNodes) return text;
  for (const std::string& host : report.action_hosts) text += printable(host) + '\n';
  return text;
}

}  // namespace lockstep
