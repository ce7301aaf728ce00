// See the header. Wordings by version: PyTorch 1.8-2.9 (ProcessGroupNCCL.cpp, ProcessGroupWrapper.cpp, gloo), NCCL 2.3-2.30, Horovod
// 0.12-0.28, DeepSpeed, torchelastic, py-spy, gdb, the Linux kernel and the NVIDIA driver.
#include "read/log_grammars.h"

#include <algorithm>

#include "base/rank_ranges.h"
#include "read/log_causes.h"

namespace lockstep {
namespace {

using namespace log_cause;  // the table names them

/// "PG ID 0 PG GUID 0(default_pg)", "PG 1", "PG 0 (default_pg)": what is equal on all ranks of it.
std::string group_name(std::string text) {
  const std::size_t guid = text.find("GUID ");
  if (guid != std::string::npos) return text.substr(guid + 5);
  return text.starts_with("PG ") ? text.substr(3) : text;
}

bool waits(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kWaits;
  event.group = group_name(fields.text("pg"));
  event.op = fields.text("op");
  event.seq = fields.number("seq");
  event.shape = fields.text("shape");
  event.elements_in = fields.number("in");
  event.elements_out = fields.number("out");
  event.count = fields.number("limit").value_or(0);
  if (!event.rank) event.rank = fields.rank("rank");
  return true;
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

/// Ranks that did not come, in words around their list.
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

/// MPI received a message that is longer than the buffer of its call; the rank that it names is the sender, not the one at fault.
bool mpi_size(const LogFields& fields, ReportedEvent& event) {
  gloo_size(fields, event);
  event.op = "MPI message";
  return true;
}

bool disagreement(const LogFields& fields, ReportedEvent& event) {
  differs(fields, event);
  event.ranks.push_back(0);
  return true;
}

bool notify_wait(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kHint;
  const std::string op = fields.text("op"), size = fields.text("size");
  event.text = "HCCL: " + (op.empty() ? "a collective" : op) + " waits for rank " + fields.text("peer") + " of the group" + (size.empty() ? "" : ", which has " + size);
  return true;
}

/// A process or rank of which RAS has no data: whether it thinks it dead stands in the lines before (LogSections).
bool ras_silent(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kHint;
  event.op = "RAS silent";
  event.ranks = fields.ranks("ranks");
  event.text = "RAS has no data of " + (event.ranks.empty() ? "p" + fields.text("process") : ranks_text(event.ranks));
  return true;
}

/// XLA names the thread in the head of its line: all of a process wait for the same.
bool rendezvous(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kHint;
  event.text = std::string(fields.whole());
  return true;
}

bool hint(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kHint;
  event.op = fields.text("op");
  event.seq = fields.number("seq");
  if (!event.rank) event.rank = fields.rank("rank");
  return true;
}

/// Printed behind every timeout: worth a word only where nothing else is said.
bool boilerplate(const LogFields& fields, ReportedEvent& event) {
  hint(fields, event);
  event.op = "boilerplate";
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

bool ras_status(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kHint;
  event.op = "RAS";
  if (const std::string comms = fields.text("comms"); !comms.empty())
    event.text = comms + (comms == "1" ? " communicator of " : " communicators of ") + fields.text("size") + " ranks: " + fields.text("op") + " " + fields.text("errors");
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

/// A host that waits for its device: in which call the device is, the stack does not say.
bool host_waits(const LogFields& fields, ReportedEvent& event) {
  event.kind = ReportedKind::kHint;
  event.text = "the host waits for its device in " + fields.text("op");
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
    {"ddp", R"((?:Parameters|Parameter indices) which did not receive grad for rank (?P<rank>\d+): .*)", unused_parameters},
    {"ddp", R"((?:\[(?P<rank2>\d+)\]: )?params\[\d+\] in this process with sizes .* appears not to match (?:sizes|strides) of the same param in process (?P<rank>\d+))", differs},
    {"pgwrapper", R"(Tensor Tensor (?:shapes|dtypes|devices): .*vs .*)", differs},
    // torch: watchdog
    {"torch", R"(raised the following async exception: (?P<what>.*))", async_exception},
    {"torch", R"(\[(?P<pg>PG [^\]]*?) ?Rank (?P<rank>\d+)\] Process group watchdog thread terminated with exception: .*Work\w+\()" TORCH_CALL, waits},
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
    {"torch", R"(we are taking the entire process down)", boilerplate},
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
    // Ray Train
    {"ray", R"(for the following ranks to join the `?(?P<op>[\w.]+)`? call: \[(?P<ranks>\d[\d, ]*)\])", absent},
    {"ray", R"(following ranks have not joined the (?P<op>collective operation): \[(?P<ranks>\d[\d, ]*)\])", absent},
    // Why a worker of Ray died is a list of guesses, and a watchdog may have ended it.
    {"ray", R"((?P<what>(?:A worker died or was killed while executing|The actor (?:is dead because|died unexpectedly)|Worker exit type: SYSTEM_ERROR|There are some potential root causes).*))", ray_worker},
    // HCCL: the rank is that in the group.
    {"hccl", R"(has not received the Notify record from remote rank: ?\[(?P<peer>\w+)\](?:.*tag\[(?P<op>[A-Za-z]+)_)?(?:.*rankSize\[(?P<size>\d+)\])?)", notify_wait},
    // NCCL
    {"nccl", R"((?:mlx\d\w*: \S+ got completion with error).*)", network},
    {"nccl", R"(NCCL WARN Duplicate GPU detected.*)", environment},
    {"nccl", R"(NCCL WARN NET/OFI .*completed with error.*)", network},
    {"nccl", R"(Got completion .*(?:error |status=\w+\()(?P<seq>\d+).*)", network},
    // MPI and TensorFlow, which look at what a message or a member brings
    {"mpi", R"(Message from rank \d+ and tag \d+ truncated; (?P<in>\d+) bytes received but buffer size is (?P<out>\d+))", mpi_size},
    {"mpi", R"(MPI_ERR_TRUNCATE.*)", differs},
    {"mpi", R"(noticed that process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal (?P<code>\d+).*)", mpirun_signal},
    {"tensorflow", R"(Shape mismatch in the collective instance .*)", differs},
    {"nccl", R"(NCCL WARN .*(?:[Cc]ollective mismatch|Mismatched collective).*? rank (?P<rank>\d+).*)", hint},
    {"nccl", R"(NCCL WARN .*(?:[Cc]ollective mismatch|[Mm]essage truncated).*)", hint},
    {"nccl", R"(Call to (?:recv|send|connect) from .* failed.*)", closed},
    {"nccl", R"(NCCL WARN .*(?:Connect to \S+ failed|Connection refused|[Nn]o route to host|Net(?:work)? is unreachable).*)", closed},
    {"nccl", R"(Communicator ranks have different (?P<op>\w+).*)", count_head},
    {"nccl", R"((?P<n>\d+) ranks? ha(?:ve|s) launched up to operation (?P<seq>\d+))", count},
    {"nccl", R"((?P<n>\d+) ranks? ha(?:ve|s) not launched any operations)", count},
    {"nccl", R"(^ *Rank (?P<rank>\d+)(?: has launched up to operation (?P<seq>\d+))? -- (?:GPU|\[process).*)", count},
    {"nccl", R"(^ *\d+ +(?P<comms>\d+) +\d+ +[\d-]+ +(?P<size>[\d-]+) +\d+ +(?P<op>(?:RUNNING|INIT|NOCOMM|ABORT|FINALIZE|UNKNOWN)[A-Z,]*) +(?P<errors>[A-Z,]+))", ras_status},
    {"nccl", R"(^ *#\d+-\d+ \([0-9a-f]+\) [A-Z,]*(?:MISMATCH|ERROR|INCOMPLETE))", ras_status},
    {"nccl", R"(^ *P(?P<process>rocess \d+ on node \S+ managing GPUs? [\d,]+))", ras_silent},
    {"nccl", R"(^ *The missing ranks?: (?P<ranks>\d[\d, -]*))", ras_silent},
    {"nccl", R"(^NCCL version \d+\.\d+.*)", hint},
    {"nccl", R"(NCCL INFO \S+:\d+ -> [1-9]\b.*)", hint},
    {"nccl", R"(\d+ job process(?:es are| is) considered dead.*)", crashed},
    // torch's analyzer of Flight Recorder dumps
    {"fr_trace", R"(Culprit rank (?P<rank>\d+); Error type: (?P<op>\w+MISMATCH)(?:, Expected .*?'\[.*?\]' does not match found .*?'\[.*?\]')?)", differs, true},
    {"fr_trace", R"((?:Collective (?P<seq>\d+) at entry \d+ errors|Collective sequence number: (?P<rank>\d+) has errors|(?:input|output) sizes: .*|expected ranks: \{.*|collective state: \w+))", hint},
    {"fr_trace", R"(missing ranks: \{(?P<ranks>\d[\d, ]*)\})", absent},
    // What stops a rank: memory, signals, hardware, disks
    {"memory", R"((?i:(?:slurmstepd: error: )?Detected \d+ oom[-_ ]kill events?|oom-kill:|Out of memory: Killed process|oom_reaper|OOMKilled|Memory cgroup out of memory).*)", killed_for_memory},
    {"memory", R"((?:RESOURCE_EXHAUSTED: .*(?:[Oo]ut of memory|while trying to allocate|[Ff]ailed to allocate)).*)", out_of_memory},
    {"memory", R"(\bEvicted\b.*low on resource: memory.*|The node was low on resource: memory.*)", killed_for_memory},
    {"signal", R"(\bEvicted\b.*low on resource.*|The node was low on resource: .*)", crashed},
    {"memory", R"((?i:CUDA out of memory|OutOfMemoryError|cudaErrorMemoryAllocation|hipErrorOutOfMemory|Cuda failure '?out of memory|oom-kill|Out of memory: Killed process|OOMKilled|oom_reaper|Killed process \d+).*)", out_of_memory},
    {"device", R"((?:NVRM: Xid|\bXid)[ :]*\([^)]*\):? *(?P<xid>\d+).*)", xid},
    {"device", R"((?:NVRM: Xid|\bXid[ :(]|(?i:uncorrectable (?:ecc|nvlink)|nvlink: fatal error|fallen off the bus|(?:mlx\d\w*|ib\d|hfi\d|roce|bond\d|NVLink|port \d+)\b.{0,60}link (?:is )?down)).*)", lost_device},
    {"device", R"((?:Unable to determine the device handle for (?:GPU|gpu)|GPU is lost|nvidia-smi: .*GPU requires reset).*)", hardware},
    {"device", R"((?:CUDA_ERROR_(?:CONTAINED|ECC_UNCORRECTABLE|HARDWARE_STACK_ERROR|NVLINK_UNCORRECTABLE)|(?i:uncorrectable (?:ecc|nvlink)|nvlink error|hardware error|fallen off the bus|link (?:is )?down)).*)", hardware},
    {"device", R"(\bamdgpu\b.*(?:GPU reset (?:begin|failed)|[Uu]ncorrectable|ring \S+ timeout|RAS (?:event|poison)).*)", lost_device},
    {"device", R"((?:HW Exception by GPU node-\d+|Memory access fault by GPU node-\d+|HSA_STATUS_ERROR_(?:EXCEPTION|MEMORY_APERTURE_VIOLATION|ILLEGAL_INSTRUCTION)|hipErrorIllegalAddress|hipErrorLaunchFailure).*)", library},
    {"device", R"((?:CUDA_ERROR_(?:ILLEGAL_ADDRESS|LAUNCH_FAILED|ASSERT)|(?i:illegal memory access|device-side assert)).*)", library},
    {"disk", R"((?:No space left on device|Disk quota exceeded|Read-only file system|Stale file handle|Transport endpoint is not connected).*)", disk},
    {"kernel", R"((?:BUG: soft lockup|NMI watchdog: .*LOCKUP|\bhard LOCKUP|self-detected stall on CPU|Kernel panic).*)", frozen_node},
    {"disk", R"((?:\bnfs: server \S+ not responding|\btask \S+:\d+ blocked for more than \d+ seconds|LustreError: .*(?:timed out|evicted)).*)", disk},
    {"signal", R"(\bCANCELLED AT \S+ DUE TO (?:PREEMPTION|NODE FAIL\w*).*)", crashed},
    // The end of a job that hung, as often as its cause: a time limit, or a user who gave up.
    {"signal", R"(\bCANCELLED AT .*)", hint},
    {"signal", R"((?:srun|slurmstepd|mpirun|prterun): error: (?P<host>[\w.-]+): tasks? [\d,-]+: (?P<what>.*))", task_ended},
    {"signal", R"((?P<line>.*(?:Segmentation fault|[Bb]us error|core dumped|signal (?:9|11|7)\b|SIGKILL|SIGSEGV|SIGBUS).*))", signalled},
    {"elastic", R"((?:rank\s*:? (?P<rank>\d+) .*)?(?:exitcode|exit code|return code|exited with code|exit status)\s*[:=]?\s*(?P<code>-?\d+).*)", exit_code},
    {"python", R"(^(?:\w+\.)*\w*(?:Error|Exception)\b: .*)", exception},
    {"nccl", R"(NCCL WARN .*(?:Call to ibv_\w+ failed|ibv_\w+ failed).*)", network},
    {"nccl", R"(NCCL WARN .*(?:(?:Cuda|HIP) failure|[Ee]rror.* shared memory).*)", library},
    {"nccl", R"((?:ncclRemoteError|ncclSystemError|ncclUnhandledCudaError|ncclInternalError).*)", closed},
    // Work that keeps a rank from its next call
    {"pause", R"((?i:saving .*checkpoint|saving (?:the )?model|writing checkpoint|checkpoint(?:ing)? .*(?:saving|started|in progress)|(?:running|start(?:ing|ed)?) (?:evaluation|validation)|evaluating:?|preprocessing|tokenizing).*)", slow},
    {"pause", R"((?P<bar>[\w ,.:()-]{0,60}\b\d{1,3}%\|.*\|(?:[^\[\]|]*\[[^\]]*\])?)(?P<other>\[[Rr]ank ?\d+\])?)", progress_bar},
    // Stacks
    {"stack", R"(^\s+(?:\w+ \((?:.*/)?torch/(?:utils/data/dataloader|serialization|distributed/checkpoint/\w+)\.py:\d+\)|File ".*/torch/(?:utils/data/dataloader|serialization|distributed/checkpoint/\w+)\.py", line \d+,? in \w+).*)", host_work},
    {"stack", R"((?:^|\W)(?:TP|DP|PP|[Rr]ank ?)(?P<rank>\d+)(?:-\d+)?\]?: (?P<chain>\w+(?: (?:→|->|<-) \w+)+))", stack},
    {"stack", R"((?:[Rr]ank (?P<rank>\d+)[\]:]* *)?#\d+ +(?:0x[0-9a-f]+ in )?P?MPI_(?P<op>[A-Z][a-z]+\w*) ?\()", stack},
    {"stack", R"(#\d+ +(?:0x[0-9a-f]+ in )?(?P<op>nccl(?:AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv|GroupEnd|CommInit\w+))\b)", stack},
    {"stack", R"(^\s+(?P<op>all_reduce|all_gather\w*|reduce_scatter\w*|broadcast\w*|all_to_all\w*|barrier|monitored_barrier|send|recv|reduce|gather|scatter) \([^()]*distributed_c10d\.py:\d+\))", stack},
    {"stack", R"(^\s*File "[^"]*distributed_c10d\.py", line \d+,? in (?P<op>all_reduce|all_gather\w*|reduce_scatter\w*|broadcast\w*|all_to_all\w*|barrier|monitored_barrier|send|recv|reduce|gather|scatter)\b)", stack},
    {"stack", R"(^\s*(?:#\d+ +(?:0x[0-9a-f]+ in )?)?(?P<op>(?:cuda|hip|cu)(?:Stream|Device|Event|Ctx)Synchronize)(?:_v2)?(?:\b|@).*)", host_waits},
    // JAX and XLA
    {"jax", R"(waiting for `[^`]*` for \d+ seconds and may be stuck.*)", rendezvous},
    {"jax", R"(Failed to meet rendezvous '.*)", rendezvous},
    {"jax", R"([Tt]ask /job:\w+/replica:\d+/task:(?P<rank>\d+) heartbeat timeout.*)", lost_task},
};
#undef TORCH_CALL
#undef FINGERPRINT

}  // namespace

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
      "(?:==|##|--|\\*\\*)[^\\n]{0,60}[Rr]ank[ _=:-]?\\d|[Rr]ank \\d+:? *(?:\\x1b\\[0?m)?\\r?\\n|local_rank: |world_size|WORLD_SIZE|RUNNING |SEND_|RECV_|Send[FB]|Recv[FB]|"
      "RESOURCE_EXHAUSTED|heartbeat timeout|replica:\\d+/task:|tasks that reached|Barrier timed out|GPU node-|HSA_STATUS|amdgpu|hipError|Evicted|low on resource|ollowing ranks|Notify record|"
      "worker died|orker exit|root causes|ctor (?:is dead|died)|completion with error|issing ranks?: |_TP\\d|managing GPU|Synchronize|Stalled ranks|DEAD|INCOMPLETE|"
      "noticed that process|not receive grad|meet rendezvous|ollective instance|\\d truncated; |ERR_TRUNCATE|soft lockup|LOCKUP|self-detected stall|Kernel panic|"
      "(?:MicroBatch|Pass|Activation|Grads?|OptimizerStep)\\(|done with schedule");
  return trigger;
}

}  // namespace lockstep
