// Reads the environment. What cannot be read is said once on stderr and left out.
#include "nccl/config.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "nccl/segment.h"
#include "settings.h"

namespace lockstep::standin {
namespace {

void complain(const char* variable, std::string_view value) {
  std::fprintf(stderr, "lockstep rehearse: LOCKSTEP_REHEARSE_%s: '%.*s' is not understood and left out\n", variable,
               static_cast<int>(value.size()), value.data());
}

/// "kind:rank=R,comm=C,seq=S[,ms=N]"
bool read_fault(const std::string& text, FaultKnob& fault) {
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (kind == "skip") fault.kind = FaultKind::kSkip;
  else if (kind == "reorder") fault.kind = FaultKind::kReorder;
  else if (kind == "delay") fault.kind = FaultKind::kDelay;
  else if (kind == "kill") fault.kind = FaultKind::kKill;
  else return false;
  if (colon == std::string::npos) return false;
  std::istringstream parts(text.substr(colon + 1));
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) return false;
    const std::string key = part.substr(0, equals);
    char* end = nullptr;
    const long value = std::strtol(part.c_str() + equals + 1, &end, 10);
    if (*end != '\0' || value < 0) return false;
    if (key == "rank") fault.rank = static_cast<int>(value);
    else if (key == "comm") fault.communicator = static_cast<int>(value);
    else if (key == "seq") fault.seq = static_cast<std::uint64_t>(value);
    else if (key == "ms") fault.delay_ms = static_cast<int>(value);
    else return false;
  }
  return true;
}

Config read_config() {
  Config config;
  if (const auto groups = setting("GROUPS"); groups == "nccl226") config.groups = GroupMode::kNccl226;
  else if (!groups.empty() && groups != "strict") complain("GROUPS", groups);
  if (const auto what = setting("ON_MISMATCH"); what == "corrupt") config.on_mismatch = OnMismatch::kCorrupt;
  else if (what == "detect") config.on_mismatch = OnMismatch::kDetect;
  else if (!what.empty() && what != "hang") complain("ON_MISMATCH", what);
  if (const auto p2p = setting("P2P"); p2p == "eager") config.eager = true;
  else if (!p2p.empty() && p2p != "rendezvous") complain("P2P", p2p);
  config.eager_bytes = static_cast<std::size_t>(number_setting("EAGER_BYTES", static_cast<long>(kEagerBytes), 0));
  if (config.eager_bytes > kEagerBytes) config.eager_bytes = kEagerBytes;
  config.resident = static_cast<int>(number_setting("RESIDENT", 0, 0));
  const char* implicit = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  config.launch_order_implicit = implicit != nullptr && std::string_view(implicit) == "1";
  config.version = static_cast<int>(number_setting("NCCL_VERSION", 22809, 2000));
  std::istringstream faults{std::string(setting("FAULT"))};
  for (std::string text; std::getline(faults, text, ';');) {
    FaultKnob fault;
    if (read_fault(text, fault)) config.faults.push_back(fault);
    else complain("FAULT", text);
  }
  return config;
}

}  // namespace

const Config& config() {
  static const Config* only = new Config(read_config());
  return *only;
}

}  // namespace lockstep::standin
