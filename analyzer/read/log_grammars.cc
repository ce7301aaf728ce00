// See the header. Wordings by version: PyTorch 1.8-2.9 (ProcessGroupNCCL.cpp, ProcessGroupWrapper.cpp, gloo), NCCL 2.3-2.30, Horovod
// 0.12-0.28, DeepSpeed, torchelastic, py-spy, gdb, the Linux kernel and the NVIDIA driver.
#include "read/log_grammars.h"

#include <algorithm>
#include <charconv>

namespace lockstep {
namespace {

constexpr std::size_t kMostRanks = 65536;

bool waits(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kWaits;
  event.op = fields.text("op");
  event.seq = fields.number("seq");
  event.shape = fields.text("shape");
  event.elements_in = fields.number("in");
  event.elements_out = fields.number("out");
  event.count = fields.number("limit").value_or(0);
  if (!event.rank) event.rank = fields.rank("rank");
  return true;
}

/// "PG ID 0 PG GUID 0(default_pg)", "PG 1", "PG 0 (default_pg)": what is equal on all ranks of it.
std::string group_name(std::string text) {
  const std::size_t guid = text.find("GUID ");
  if (guid != std::string::npos) return text.substr(guid + 5);
  return text.starts_with("PG ") ? text.substr(3) : text;
}

bool progress(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kProgress;
  event.group = group_name(fields.text("pg"));
  event.seq = fields.number("seq");
  event.enqueued = fields.number("enq");
  event.completed = fields.number("comp");
  if (!event.rank) event.rank = fields.rank("rank");
  event.ranks = fields.ranks("ranks");
  return event.rank || !event.ranks.empty();
}

bool side(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kSide;
  event.rank = fields.rank("rank");
  event.seq = fields.number("seq");
  event.op = fields.text("op");
  event.shape = fields.text("shape");
  event.datatype = fields.text("type");
  return true;
}

bool calls(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kCalls;
  if (!event.rank) event.rank = fields.rank("rank");
  event.seq = fields.number("seq");
  event.op = fields.text("op");
  event.shape = fields.text("shape");
  event.datatype = fields.text("type");
  return event.rank.has_value();
}

bool absent(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kAbsent;
  event.op = fields.text("op");
  event.ranks = fields.ranks("ranks");
  event.rank.reset();
  return !event.ranks.empty();
}

/// Horovod before 0.13 lists those that are ready.
bool ready(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kAbsent;
  event.op = fields.text("op");
  event.ranks = fields.ranks("ranks");
  event.finding_class = "ready";
  event.rank.reset();
  return !event.ranks.empty();
}

bool differs(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kDiffers;
  event.op = fields.text("op");
  event.ranks = fields.ranks("ranks");
  for (const char* name : {"rank", "rank2"}) {
    if (const auto rank = fields.rank(name)) event.ranks.push_back(*rank);
  }
  return true;
}

/// Gloo received a message that is longer than what the rank has room for in its call: the two ranks of the pair are in calls of
/// other sizes, or in other calls. It names neither; the rank of the line is one of them.
bool gloo_size(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kDiffers;
  event.op = "gloo message";
  event.elements_in = fields.number("in");
  event.elements_out = fields.number("out");
  return event.elements_in && event.elements_out && *event.elements_in != *event.elements_out;
}

bool disagreement(const LogFields& fields, ReportedEvent& event) {
  differs(fields, event);
  event.ranks.push_back(0);
  return true;
}

template <int Proves>
bool event_of(const char* finding_class, ReportedEvent& event) {
  event.kind = ReportedKind::kEvent;
  event.finding_class = finding_class;
  event.proves = Proves != 0;
  return true;
}
bool out_of_memory(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("out_of_memory", event); }
bool network(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("network_fault", event); }
bool closed(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<0>("peer_crashed", event); }
bool hardware(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("hardware_fault", event); }
bool crashed(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("peer_crashed", event); }
bool library(const LogFields& /*fields*/, ReportedEvent& event) { return event_of<1>("library_fault", event); }
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

/// A stack in the loading of data or in a checkpoint.
bool host_work(const LogFields& fields, ReportedEvent& event) {
  event.op = "stack";
  return slow(fields, event);
}

/// Training prints bars too: one says something only on a rank that the others wait for.
bool progress_bar(const LogFields& fields, ReportedEvent& event) {
  event.op = "progress bar";
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
  event_of<0>("peer_crashed", event);
  event.proves = !RE2::PartialMatch(re2::StringPiece(whole.data(), whole.size()), kConsequence);
  return event.proves;
}

bool hint(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kHint;
  event.op = fields.text("op");
  event.seq = fields.number("seq");
  if (!event.rank) event.rank = fields.rank("rank");
  return true;
}

/// A hint that names the rank whose log is worth reading.
bool hint_at_rank(const LogFields& fields, ReportedEvent& event) {
  hint(fields, event);
  event.ranks = fields.ranks("look");
  return true;
}

/// Torch's desync report: "[5, 7] finished collective #202, but didn't join collective #203".
bool desync_absent(const LogFields& fields, ReportedEvent& event) {
  absent(fields, event);
  event.seq = fields.number("seq");
  event.op = "collective #" + fields.text("seq");
  return !event.ranks.empty();
}

/// Xid numbers that a program's own fault raises on sound hardware: illegal accesses and what ends with them.
bool xid(const LogFields& fields, ReportedEvent& event) {
  constexpr std::int64_t kOfPrograms[] = {8, 13, 31, 43, 45, 68, 69};
  const bool own = std::ranges::find(kOfPrograms, fields.number("xid").value_or(0)) != std::end(kOfPrograms);
  event.of_node = !own;
  return event_of<1>(own ? "library_fault" : "hardware_fault", event);
}

bool ras_status(const LogFields& /*fields*/, ReportedEvent& event) {
  event.kind = ReportedKind::kHint;
  event.op = "RAS";
  return true;
}

bool count_head(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kCount;
  event.op = fields.text("op");
  return true;
}

bool count(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kCount;
  event.count = fields.number("n").value_or(0);
  event.seq = fields.number("seq");
  if (const auto rank = fields.rank("rank")) event.ranks = {*rank};
  return true;
}

/// Innermost first, or the other way round: the collective is at one of the ends.
bool stack(const LogFields& fields, ReportedEvent& event) {
  static const RE2 kCall(R"(\b(_?(?:all_?reduce|all_?gather|reduce_?scatter|broadcast|all_?to_?all|barrier|reduce|gather|scatter|bcast|send|recv|isend|irecv|batch_isend_irecv)(?:_base|_into_tensor|_tensor|_object|_object_list|_single|_coalesced)?)\b)");
  event.kind = ReportedKind::kStack;
  if (const auto rank = fields.rank("rank")) event.rank = rank;
  event.op = fields.text("op");
  if (!event.op.empty()) return true;
  const std::string chain = fields.text("chain");
  std::string found;
  if (!RE2::PartialMatch(chain, kCall, &found)) return false;
  event.op = found;
  return true;
}

#define TORCH_CALL R"((?:SeqNum=(?P<seq>\d+),? ?|\.\.\.,? ?)?OpType=(?P<op>\w+)(?:, ?TensorShape=\[(?P<shape>[^\]]*)\])?(?:, ?NumelIn=(?P<in>\d+),? ?NumelOut=(?P<out>\d+))?(?:, ?Timeout\(ms\)=(?P<limit>\d+))?)"
#define FINGERPRINT R"((?:CollectiveFingerPrint\()?(?:SequenceNumber=(?P<seq>\d+))?[, .]*(?:OpType=(?P<op>\w+))?(?:, ?TensorShape=\[(?P<shape>[^\]]*)\])?(?:, ?TensorDtypes=(?P<type>\w+))?)"

constexpr LogGrammar kGrammars[] = {
    // torch: fingerprints of TORCH_DISTRIBUTED_DEBUG=DETAIL. Before the watchdog: the words may stand in its message.
    {"pgwrapper", R"(\[Rank (?P<rank>\d+)\] Running collective: )" FINGERPRINT, calls},
    {"pgwrapper", R"(Rank (?P<rank>\d+) is calling collective: (?P<op>[A-Z_]+)\b)", side},
    {"pgwrapper", R"(Rank (?P<rank>\d+) is (?:running|calling)(?: inconsistent)? collective: )" FINGERPRINT, side, true},
    {"pgwrapper", R"(Error when verifying shape tensors for collective (?P<op>\w+) on rank (?P<rank>\d+)\..*Got shapes: (?P<shape>.*))", side},
    {"pgwrapper", R"(Detected mismatch between collectives on ranks)", differs},
    {"ddp", R"(DDP expects same model across all ranks, but Rank (?P<rank>\d+) has \d+ params, while rank (?P<rank2>\d+) has inconsistent \d+ params)", differs},
    {"ddp", R"((?:\[(?P<rank2>\d+)\]: )?params\[\d+\] in this process with sizes .* appears not to match (?:sizes|strides) of the same param in process (?P<rank>\d+))", differs},
    {"pgwrapper", R"(Tensor Tensor (?:shapes|dtypes|devices): .*vs .*)", differs},
    // torch: watchdog
    {"torch", R"(raised the following async exception: (?P<what>.*))", async_exception},
    {"torch", R"(Work\w+\()" TORCH_CALL, waits},
    {"torch", R"(\[(?P<pg>PG [^\]]*?) ?Rank (?P<rank>\d+)\].*(?:at work(?: sequence id)?|at NCCL work): (?P<seq>\d+).*last enqueued (?:NCCL )?work: (?P<enq>-?\d+), last completed (?:NCCL )?work: (?P<comp>-?\d+))", progress},
    {"torch", R"(\[(?P<pg>PG [^\]]*?) ?Rank (?P<rank>\d+)\].*dump signal.*[Ll]ast enqueued (?:NCCL )?work: (?P<enq>-?\d+), last completed (?:NCCL )?work: (?P<comp>-?\d+))", progress},
    {"torch", R"(ranks? (?P<ranks>\d[\d, and-]*): last enqueued (?P<enq>-?\d+), last completed (?P<comp>-?\d+))", progress},
    {"torch", R"(\[(?P<rank>\d+)\] Timeout at collective: (?P<op>\w+), #(?P<seq>\d+))", waits},
    {"torch", R"(\[(?P<ranks>\d[\d, -]*)\] finished collective #\d+, but didn't join collective #(?P<seq>\d+))", desync_absent},
    {"torch", R"(watchdog got stuck for (?P<seq>\d+) seconds)", hint},
    {"torch", R"(\[(?P<rank>\d+)\] is setting up NCCL communicators? and retrieving ncclUniqueId(?: from \[(?P<look>\d+)\])?)", hint_at_rank},
    {"torch", R"(process group has NOT been destroyed before.*)", hint},
    {"torch", R"(First PG on this rank to signal dumping|First watchdog to set the dump signal|Observed flight recorder dump signal from another rank.*)", hint},
    {"torch", R"(Stack trace of the failed collective not found.*)", hint},
    {"torch", R"(^#\d+ (?:all_reduce|all_gather|reduce_scatter|broadcast|all_to_all|barrier|reduce|gather|scatter|send|recv)\w* from .*distributed_c10d\.py:\d+)", hint},
    {"torch", R"(we are taking the entire process down)", hint},
    {"torch", R"(client socket has (?:timed out|failed).*)", hint},
    {"torch", R"((?:Timed out after \d+ seconds waiting for clients\.|wait timeout after \d+ms).*)", hint},
    // gloo and monitored barriers
    {"gloo", R"(Ranks? (?P<ranks>\d[\d, ]*) failed to pass (?P<op>monitoredBarrier))", absent},
    {"gloo", R"(Rank (?P<rank>\d+) successfully reached monitoredBarrier, but received errors .*rank (?P<look>\d+))", hint_at_rank},
    {"gloo", R"(Rank (?P<rank>\d+) timed out in monitoredBarrier after \d+ ms.*)", hint},
    {"gloo", R"((?:No ranks|Ranks that) successfully processed(?: in)? monitoredBarrier.*)", hint},
    {"gloo", R"(Timed out waiting \d+ms for (?P<op>send|recv) operation to complete)", hint},
    {"gloo", R"(op\.preamble\.length <= op\.(?:nbytes|buf->size_(?: - op\.preamble\.roffset)?)\. (?P<in>\d+) vs (?P<out>\d+))", gloo_size},
    {"gloo", R"((?:\[enforce fail at [^\]]*gloo/|connectFullMesh failed).*)", hint},
    {"gloo", R"((?:Connection closed by (?:remote )?peer|Connection reset by peer|Broken pipe|[Rr]emote process exited or there was a network error).*)", closed},
    // DeepSpeed
    {"deepspeed", R"(disagreement between rank0 and rank(?P<rank>\d+).*)", disagreement},
    {"deepspeed", R"(^Comm\. Op +Message Size +Count.*)", hint},
    // Horovod
    {"horovod", R"((?P<op>[\w./<>:-]+) \[ready ranks: (?P<ranks>[\d, ]+)\])", ready, true},
    {"horovod", R"((?P<op>[\w./<>-]+) \[missing ranks: (?P<ranks>[\d, ]+)\])", absent, true},
    {"horovod", R"(Mismatched (?P<op>\w+) [\w/ ]+: One rank .*, but another rank .*)", differs},
    {"horovod", R"(submitted to be reduced, gathered or broadcasted by subset of ranks.*)", hint},
    {"horovod", R"((?:^|\b)[Rr]ank (?P<rank>\d+): (?P<op>Horovod\w+))", stack},
    // NCCL
    {"nccl", R"(Got completion .*(?:error |status=\w+\()(?P<seq>\d+).*)", network},
    {"nccl", R"(NCCL WARN .*(?:[Cc]ollective mismatch|Mismatched collective).*? rank (?P<rank>\d+).*)", hint},
    {"nccl", R"(NCCL WARN .*(?:[Cc]ollective mismatch|[Mm]essage truncated).*)", hint},
    {"nccl", R"(Call to (?:recv|send|connect) from .* failed.*)", closed},
    {"nccl", R"(NCCL WARN .*(?:Connect to \S+ failed|Connection refused|[Nn]o route to host|Net(?:work)? is unreachable).*)", closed},
    {"nccl", R"(Communicator ranks have different (?P<op>\w+).*)", count_head},
    {"nccl", R"((?P<n>\d+) ranks? ha(?:ve|s) launched up to operation (?P<seq>\d+))", count},
    {"nccl", R"((?P<n>\d+) ranks? ha(?:ve|s) not launched any operations)", count},
    {"nccl", R"(^ *Rank (?P<rank>\d+)(?: has launched up to operation (?P<seq>\d+))? -- (?:GPU|\[process).*)", count},
    {"nccl", R"(^ *\d+ +\d+ +\d+ +[\d-]+ +[\d-]+ +\d+ +(?P<op>RUNNING|INIT|NOCOMM|ABORT|FINALIZE)[A-Z,]* +[A-Z,]+)", ras_status},
    {"nccl", R"(^ *#\d+-\d+ \([0-9a-f]+\) [A-Z,]*(?:MISMATCH|ERROR|INCOMPLETE))", ras_status},
    {"nccl", R"(^NCCL version \d+\.\d+.*)", hint},
    {"nccl", R"(NCCL INFO \S+:\d+ -> [1-9]\b.*)", hint},
    {"nccl", R"(\d+ job process(?:es are| is) considered dead.*)", crashed},
    // torch's analyzer of Flight Recorder dumps
    {"fr_trace", R"(Culprit rank (?P<rank>\d+); Error type: (?P<op>\w+MISMATCH)(?:, Expected .*?'\[.*?\]' does not match found .*?'\[.*?\]')?)", differs, true},
    {"fr_trace", R"((?:Collective (?P<seq>\d+) at entry \d+ errors|Collective sequence number: (?P<rank>\d+) has errors|(?:input|output) sizes: .*|expected ranks: \{.*|collective state: \w+))", hint},
    {"fr_trace", R"(missing ranks: \{(?P<ranks>\d[\d, ]*)\})", absent},
    // What stops a rank: memory, signals, hardware, disks
    {"memory", R"((?i:(?:slurmstepd: error: )?Detected \d+ oom[-_ ]kill events?|oom-kill:|Out of memory: Killed process|oom_reaper|OOMKilled|Memory cgroup out of memory).*)", killed_for_memory},
    {"memory", R"((?i:CUDA out of memory|OutOfMemoryError|cudaErrorMemoryAllocation|hipErrorOutOfMemory|Cuda failure '?out of memory|oom-kill|Out of memory: Killed process|OOMKilled|oom_reaper|Killed process \d+).*)", out_of_memory},
    {"device", R"((?:NVRM: Xid|\bXid)[ :]*\([^)]*\):? *(?P<xid>\d+).*)", xid},
    {"device", R"((?:NVRM: Xid|\bXid[ :(]|(?i:uncorrectable (?:ecc|nvlink)|nvlink: fatal error|fallen off the bus|(?:mlx\d\w*|ib\d|hfi\d|roce|bond\d|NVLink|port \d+)\b.{0,60}link (?:is )?down)).*)", lost_device},
    {"device", R"((?:Unable to determine the device handle for (?:GPU|gpu)|GPU is lost|nvidia-smi: .*GPU requires reset).*)", hardware},
    {"device", R"((?:CUDA_ERROR_(?:CONTAINED|ECC_UNCORRECTABLE|HARDWARE_STACK_ERROR|NVLINK_UNCORRECTABLE)|(?i:uncorrectable (?:ecc|nvlink)|nvlink error|hardware error|fallen off the bus|link (?:is )?down)).*)", hardware},
    {"device", R"((?:CUDA_ERROR_(?:ILLEGAL_ADDRESS|LAUNCH_FAILED|ASSERT)|(?i:illegal memory access|device-side assert)).*)", library},
    {"disk", R"((?:No space left on device|Disk quota exceeded|Read-only file system|Stale file handle|Transport endpoint is not connected).*)", disk},
    {"disk", R"((?:\bnfs: server \S+ not responding|\btask \S+:\d+ blocked for more than \d+ seconds|LustreError: .*(?:timed out|evicted)).*)", disk},
    {"signal", R"(\bCANCELLED AT \S+ DUE TO (?:PREEMPTION|NODE FAIL\w*).*)", crashed},
    // The end of a job that hung, as often as its cause: a time limit, or a user who gave up.
    {"signal", R"(\bCANCELLED AT .*)", hint},
    {"signal", R"((?:srun|slurmstepd|mpirun|prterun): error: (?P<host>[\w.-]+): tasks? [\d,-]+: (?P<what>.*))", task_ended},
    {"signal", R"((?:Segmentation fault|[Bb]us error|core dumped|signal (?:9|11|7)\b|SIGKILL|SIGSEGV|SIGBUS).*)", crashed},
    {"elastic", R"((?:rank\s*:? (?P<rank>\d+) .*)?(?:exitcode|exit code|return code|exited with code|exit status)\s*[:=]?\s*(?P<code>-?\d+).*)", exit_code},
    {"python", R"(^(?:\w+\.)*\w*(?:Error|Exception)\b: .*)", exception},
    {"nccl", R"(NCCL WARN .*(?:Call to ibv_\w+ failed|ibv_\w+ failed).*)", network},
    {"nccl", R"(NCCL WARN .*(?:(?:Cuda|HIP) failure|[Ee]rror.* shared memory).*)", library},
    {"nccl", R"((?:ncclRemoteError|ncclSystemError|ncclUnhandledCudaError|ncclInternalError).*)", closed},
    // Work that keeps a rank from its next call
    {"pause", R"((?i:saving .*checkpoint|saving (?:the )?model|writing checkpoint|checkpoint(?:ing)? .*(?:saving|started|in progress)|(?:running|start(?:ing|ed)?) (?:evaluation|validation)|evaluating:?|preprocessing|tokenizing).*)", slow},
    {"pause", R"(\d{1,3}%\|.*\|)", progress_bar},
    // Stacks
    {"stack", R"(^\s+(?:\w+ \((?:.*/)?torch/(?:utils/data/dataloader|serialization|distributed/checkpoint/\w+)\.py:\d+\)|File ".*/torch/(?:utils/data/dataloader|serialization|distributed/checkpoint/\w+)\.py", line \d+,? in \w+).*)", host_work},
    {"stack", R"((?:^|\W)(?:TP|DP|PP|[Rr]ank ?)(?P<rank>\d+)(?:-\d+)?\]?: (?P<chain>\w+(?: (?:→|->|<-) \w+)+))", stack},
    {"stack", R"((?:[Rr]ank (?P<rank>\d+)[\]:]* *)?#\d+ +(?:0x[0-9a-f]+ in )?P?MPI_(?P<op>[A-Z][a-z]+\w*) ?\()", stack},
    {"stack", R"(#\d+ +(?:0x[0-9a-f]+ in )?(?P<op>nccl(?:AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv|GroupEnd|CommInit\w+))\b)", stack},
    {"stack", R"(^\s+(?P<op>all_reduce|all_gather\w*|reduce_scatter\w*|broadcast\w*|all_to_all\w*|barrier|monitored_barrier|send|recv|reduce|gather|scatter) \([^()]*distributed_c10d\.py:\d+\))", stack},
    {"stack", R"(^\s*File "[^"]*distributed_c10d\.py", line \d+,? in (?P<op>all_reduce|all_gather\w*|reduce_scatter\w*|broadcast\w*|all_to_all\w*|barrier|monitored_barrier|send|recv|reduce|gather|scatter)\b)", stack},
    {"jax", R"(waiting for `[^`]*` for \d+ seconds and may be stuck.*)", hint},
};
#undef TORCH_CALL
#undef FINGERPRINT

}  // namespace

const re2::StringPiece* LogFields::find(const char* name) const {
  const auto at = names_.find(name);
  if (at == names_.end() || static_cast<std::size_t>(at->second) >= groups_.size()) return nullptr;
  const re2::StringPiece& group = groups_[static_cast<std::size_t>(at->second)];
  return group.data() == nullptr ? nullptr : &group;
}

std::string LogFields::text(const char* name) const {
  constexpr std::size_t kLongest = 400;
  const re2::StringPiece* const group = find(name);
  return group == nullptr ? std::string{} : std::string(group->data(), std::min(group->size(), kLongest));
}

std::optional<std::int64_t> LogFields::number(const char* name) const {
  const re2::StringPiece* const group = find(name);
  std::int64_t value = 0;
  if (group == nullptr || std::from_chars(group->data(), group->data() + group->size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

std::optional<std::int32_t> LogFields::rank(const char* name) const {
  const auto value = number(name);
  if (!value || *value < 0 || *value > 0x7ffffffe) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

std::vector<std::int32_t> LogFields::ranks(const char* name) const {
  const re2::StringPiece* const group = find(name);
  return group == nullptr ? std::vector<std::int32_t>{} : ranks_in({group->data(), group->size()});
}

std::vector<std::int32_t> ranks_in(std::string_view text) {
  std::vector<std::int32_t> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool is_range = false;
  while (at < end && ranks.size() < kMostRanks) {
    std::int32_t value = 0;
    const auto [next, problem] = std::from_chars(at, end, value);
    if (problem != std::errc{} || value < 0) {
      is_range = *at == '-' || (is_range && *at == ' ');
      ++at;
      continue;
    }
    if (is_range && !ranks.empty()) {
      for (std::int32_t between = ranks.back() + 1; between < value && ranks.size() < kMostRanks; ++between) ranks.push_back(between);
    }
    is_range = false;
    ranks.push_back(value);
    at = next;
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::span<const LogGrammar> log_grammars() { return kGrammars; }

const RE2& log_trigger() {
  // Words that stand in every line of the table; what follows is decided line by line.
  static const RE2 trigger(
      "OpType=|async exception|  File \"/|Watchdog|ProcessGroup|last enqueued|[Ll]ast enqueued|collective|Collective|monitoredBarrier|Timed out waiting|Connection (?:closed|reset)|Broken pipe|"
      "emote process exited|disagreement between|DDP expects| ranks: |Missing ranks|Stalled ops|Mismatched |Horovod|Got completion|NCCL|nccl|Call to |"
      "Communicator ranks|launched|considered dead| -- (?:GPU|\\[process)|Culprit rank|put sizes: |[Oo]ut ?[Oo]f ?[Mm]emory|OutOfMemory|"
      "cudaErrorMemory|hipErrorOut|oom|OOM|Killed process|Xid|CUDA|ncorrectable|(?i:nvlink)|ardware error|off the bus|illegal memory|device-side|"
      "ink (?:is )?down|Tensor Tensor |taking the entire process|for clients|wait timeout|dump(?:ing|s| signal)|Flight ?Recorder|flight recorder|Stack trace of|subset of ranks|client socket|appears not to match|ranks successfully|Comm\\. Op|comm op: |MISMATCH|missing ranks: |Not all ranks|expected ranks|: tasks? \\d|No space left|quota exceeded|Read-only file|Stale file|ransport endpoint|egmentation fault|[Bb]us error|not responding|blocked for more|LustreError|core dumped|signal |"
      "SIG(?:KILL|SEGV|BUS)|exit ?code|return code|exited with|exit status|Error\\b|Exception\\b|[Cc]heckpoint|aving |valuat|alidation|"
      "device handle for|GPU is lost|requires reset|CANCELLED AT|enforce fail at|connectFullMesh|op\\.preamble|reprocessing|okenizing|%\\|| (?:<-|->|→) |MPI_|distributed_c10d|watchdog got stuck|ncclUniqueId|may be stuck|been destroyed|didn't join|\\d+ (?:started|finished) ranks:|\\] started |(?:dataloader|serialization)\\.py|"
      "(?:==|##|--|\\*\\*)[^\\n]{0,60}[Rr]ank[ _=:-]?\\d|[Rr]ank \\d+:? *\\n|local_rank: |world_size|WORLD_SIZE|RUNNING |SEND_|RECV_|Send[FB]|Recv[FB]|"
      "(?:MicroBatch|Pass|Activation|Grads?|OptimizerStep)\\(|done with schedule");
  return trigger;
}

}  // namespace lockstep
