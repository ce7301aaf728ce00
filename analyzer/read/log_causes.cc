// See the header. Which lines prove that a job had to stop, and which only tell what ended it.
#include "read/log_causes.h"

#include <re2/re2.h>

#include <algorithm>
#include <iterator>

namespace lockstep::log_cause {
namespace {

template <int Proves>
bool event_of(const char* finding_class, ReportedEvent& event) {
  event.kind = ReportedKind::kEvent;
  event.finding_class = finding_class;
  event.proves = Proves != 0;
  return true;
}

}  // namespace

bool out_of_memory(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("out_of_memory", event); }
bool network(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("network_fault", event); }
bool closed(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<0>("peer_crashed", event); }
bool hardware(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("hardware_fault", event); }
bool crashed(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("peer_crashed", event); }
bool library(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("library_fault", event); }
bool environment(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("environment_differs", event); }
bool disk(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("host_frozen", event); }
bool slow(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<0>("slow_peer", event); }

/// What the kernel, the scheduler or the driver says of a node: memory that it took away, a device or a link that is lost.
bool killed_for_memory(const LogFields& fields, ReportedEvent& event) {
  out_of_memory(fields, event);
  event.of_node = true;
  if (event.host.empty()) event.host = fields.text("host");
  return true;
}
bool lost_device(const LogFields& fields, ReportedEvent& event) {
  hardware(fields, event);
  event.of_node = true;
  if (event.host.empty()) event.host = fields.text("host");
  return true;
}

/// Torch's watchdog passes on what NCCL or CUDA said of an operation in flight.
bool async_exception(const LogFields& fields, ReportedEvent& event) {
  static const RE2 kMemory(R"(out of memory)");
  static const RE2 kDevice(R"(illegal memory access|device-side assert|unspecified launch failure|misaligned address|CUDA_ERROR|[Cc]uda failure)");
  static const RE2 kHardware(R"(uncorrectable|ECC error|nvlink|hardware)");
  const std::string what = fields.text("what");
  if (!event.rank) event.rank = fields.rank("rank");
  if (RE2::PartialMatch(what, kMemory)) return out_of_memory(fields, event);
  if (RE2::PartialMatch(what, kHardware)) return hardware(fields, event);
  if (RE2::PartialMatch(what, kDevice)) return library(fields, event);
  return closed(fields, event);
}

/// Launchers say where a task ended: "srun: error: node-c: task 11: ...".
bool task_ended(const LogFields& fields, ReportedEvent& event) {
  static const RE2 kMemory(R"((?i:out of memory|oom.?kill))");
  const std::string what = fields.text("what");
  if (RE2::PartialMatch(what, kMemory)) return killed_for_memory(fields, event);
  event_of<1>("peer_crashed", event);
  event.host = fields.text("host");
  event.proves = what.find("Segmentation") != std::string::npos || what.find("Bus error") != std::string::npos ||
                 what.find("Illegal instruction") != std::string::npos || what.find("Killed") != std::string::npos;
  return event.proves;
}

bool ray_worker(const LogFields& fields, ReportedEvent& event) {
  static const RE2 kWhere(R"((?:Worker IP address|ip): ?(\S+).*?(?:Worker PID|pid): ?(\d+))");
  const std::string_view whole = fields.whole();
  const re2::StringPiece text(whole.data(), whole.size());
  std::string host, pid;
  const bool placed = RE2::PartialMatch(text, kWhere, &host, &pid);
  closed(fields, event);
  event.text = "a Ray worker died" + (placed ? " (pid " + pid + " on " + host + ")" : std::string{});
  if (whole.find("OOM killer") != std::string_view::npos) event.text += "; Ray lists as possible: the OOM killer, ray stop --force, a crash";
  return true;
}

/// JAX's coordination service has lost a process: its number is what the program calls process_index.
bool lost_task(const LogFields& fields, ReportedEvent& event) {
  event_of<1>("peer_crashed", event);
  event.rank = fields.rank("rank");
  return true;
}

/// mpirun names the rank in the job and its node. Signals 6 and 15 end a job that gave up waiting.
bool mpirun_signal(const LogFields& fields, ReportedEvent& event) {
  event_of<1>("peer_crashed", event);
  const std::int64_t signal = fields.number("code").value_or(0);
  event.proves = signal != 6 && signal != 15;
  event.rank = fields.rank("rank");
  event.host = fields.text("host");
  return true;
}

/// DDP refuses the next step on a rank whose loss did not use all parameters: its own buckets were never reduced.
bool unused_parameters(const LogFields& fields, ReportedEvent& event) {
  event_of<1>("peer_crashed", event);
  event.rank = fields.rank("rank");
  return true;
}

bool frozen_node(const LogFields& fields, ReportedEvent& event) {
  disk(fields, event);
  event.of_node = true;
  return true;
}

/// "Aborted" is how a watchdog ends its process: a consequence. Other signals are not.
bool signalled(const LogFields& fields, ReportedEvent& event) {
  static const RE2 kByWatchdog(R"(\bAborted\b|SIGABRT|signal 6\b)");
  event_of<1>("peer_crashed", event);
  event.proves = !RE2::PartialMatch(fields.text("line"), kByWatchdog);
  return true;
}

/// A stack in the loading of data or in a checkpoint.
bool host_work(const LogFields& fields, ReportedEvent& event) {
  event.op = "stack";
  return slow(fields, event);
}

/// Training prints bars too: one says something only on a rank that the others wait for. A bar without a newline stands before
/// what another rank wrote next.
bool progress_bar(const LogFields& fields, ReportedEvent& event) {
  event.op = "progress bar";
  event.text = fields.text("bar");
  if (!fields.text("other").empty()) event.rank.reset();
  return slow(fields, event);
}

/// -6 and -15, 1 and 143 are how watchdogs and launchers end a job: consequences.
bool exit_code(const LogFields& fields, ReportedEvent& event) {
  const std::int64_t code = fields.number("code").value_or(0);
  if (code == 0) return false;
  const bool by_itself = code == -9 || code == -11 || code == -7 || code == -4 || code == 137 || code == 139 || code == 135;
  event_of<0>("peer_crashed", event);
  event.proves = by_itself;
  if (const auto rank = fields.rank("rank")) event.rank = rank;
  event.seq = code;
  return true;
}

bool exception(const LogFields& fields, ReportedEvent& event) {
  // These report what another rank did, or that a wait was given up.
  static const RE2 kConsequence(R"(DistBackendError|DistNetworkError|NCCL|nccl\w*Error|gloo|[Tt]imed? ?out|Timeout|Connection (?:closed|reset)|ChildFailedError|SIGABRT|SIGTERM|KeyboardInterrupt|collective|store|[Bb]arrier|ProcessGroup|successfully reached|ProcessRaisedException|ProcessExitedException|RayActorError|mismatch|disagreement)");
  const std::string_view whole = fields.whole();
  // A store of files or a service beside the job is no other rank.
  static const RE2 kOfService(R"(^(?:botocore|boto3|s3fs|gcsfs|google|azure|adlfs|requests|urllib3|aiohttp|httpx|huggingface_hub|datasets|fsspec|wandb|mlflow|sqlalchemy|psycopg2|pymongo)\.)");
  const re2::StringPiece text(whole.data(), whole.size());
  event_of<0>("peer_crashed", event);
  // Nor is the loading of data.
  const bool of_loader = whole.find("DataLoader") != std::string_view::npos;
  event.proves = !RE2::PartialMatch(text, kConsequence) || RE2::PartialMatch(text, kOfService) || of_loader;
  return event.proves;
}

/// Xid numbers that a program's own fault raises on sound hardware: illegal accesses and what ends with them.
bool xid(const LogFields& fields, ReportedEvent& event) {
  constexpr std::int64_t kOfPrograms[] = {8, 13, 31, 43, 45, 68, 69};
  const bool own = std::ranges::find(kOfPrograms, fields.number("xid").value_or(0)) != std::end(kOfPrograms);
  event.of_node = !own;
  return event_of<1>(own ? "library_fault" : "hardware_fault", event);
}

}  // namespace lockstep::log_cause
