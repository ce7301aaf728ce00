// Recording of what begins and ends: groups, communicators, operators. Nothing here is in the path of a step but the group brackets.
#include <cstddef>
#include <cstring>

#include "nccl/dispatch.h"
#include "nccl/recording.h"
#include "text.h"

namespace lockstep::shim::nccl {

constinit thread_local NcclThread t_nccl __attribute__((tls_model("initial-exec"))) = {};
constinit Pair g_pairs[kPairs] = {};

void reset_pairs() noexcept {
  for (Pair& pair : g_pairs) {
    pair.key.store(0, std::memory_order_relaxed);
    pair.messages = 0;
    pair.fingerprint = 0;
  }
}

namespace {

constinit std::atomic<std::uint32_t> g_launches{0};
constinit std::atomic<std::uint64_t> g_made{0};
constinit std::atomic<std::uint32_t> g_init_alls{0};
constexpr int kMostDevices = 256;

// Of all threads: few groups make communicators at one time.
constexpr std::uint32_t kMostPending = 1024;
constinit Pending g_pending[kMostPending] = {};
constinit SpinLock g_pending_lock;

void push_pending(const Pending& pending) noexcept {
  const SpinGuard guard(g_pending_lock);
  for (Pending& place : g_pending) {
    if (place.thread != nullptr) continue;
    place = pending;
    place.thread = &t_nccl;
    ++t_nccl.pending;
    return;
  }
}

/// The first that is left of this thread; false if there is none. In the order in which they were made, unless threads mixed.
bool pop_pending(Pending& pending) noexcept {
  if (t_nccl.pending == 0) return false;
  const SpinGuard guard(g_pending_lock);
  for (Pending& place : g_pending) {
    if (place.thread != &t_nccl) continue;
    pending = place;
    place.thread = nullptr;
    --t_nccl.pending;
    return true;
  }
  t_nccl.pending = 0;
  return false;
}

/// Stands for a handle until there is one: no address has this bit.
std::uint64_t next_made_as() noexcept {
  return std::uint64_t{1} << 62 | (g_made.fetch_add(1, std::memory_order_relaxed) + 1);
}

// What all members have, and nobody else: the unique ids. NCCL's own hash of a communicator is made of the same.
std::uint64_t hash_ids(const ncclUniqueId* ids, int count) noexcept {
  std::uint64_t hash = 0;
  for (int i = 0; i < count; ++i) {
    hash = trace::mix(hash ^ trace::text_hash(ids[i].internal, sizeof ids[i].internal),
                      static_cast<std::uint64_t>(i) + 1);
  }
  return hash == 0 ? 1 : hash;
}

std::uint64_t child_identity(const Comm* parent, OpKind kind, std::uint32_t number, std::uint64_t which) noexcept {
  if (parent == nullptr || parent->identity == 0) return 0;
  const std::uint64_t making = static_cast<std::uint64_t>(kind) << 32 | number;
  const std::uint64_t hash = trace::mix(trace::mix(parent->identity, making), which);
  return hash == 0 ? 1 : hash;
}

bool has_field(const ncclConfig_t* config, std::size_t end) noexcept {
  return config != nullptr && config->size >= end && config->magic == kConfigMagic;
}
std::uint8_t blocking_of(const ncclConfig_t* config) noexcept {
  if (!has_field(config, offsetof(ncclConfig_t, blocking) + sizeof(int))) return 0;
  return config->blocking == kUndefinedInt ? 0 : config->blocking != 0 ? 1 : 2;
}
constexpr unsigned kFirstWithNames = 22700;
const char* name_of(const ncclConfig_t* config) noexcept {
  const bool there = has_field(config, offsetof(ncclConfig_t, commName) + sizeof(char*)) &&
                     config->version >= kFirstWithNames && config->commName != nullptr;
  return there ? config->commName : "";
}

/// What NCCL says of a communicator that is ready.
struct Facts {
  int rank = -1;
  int nranks = 0;
  int device = -1;
};
Facts ask(ncclComm_t comm) noexcept {
  const ErrnoKeeper keep;
  Facts facts;
  using Ask = ncclResult_t (*)(ncclComm_t, int*);
  const auto put = [comm](Function function, int& value) noexcept {
    const auto real = original<Ask>(function);
    int answer = value;
    if (real != nullptr && real(comm, &answer) == ncclSuccess) value = answer;
  };
  put(Function::kCommUserRank, facts.rank);
  put(Function::kCommCount, facts.nranks);
  put(Function::kCommCuDevice, facts.device);
  return facts;
}

/// The library has told the handle, or that there is none.
void settle(const Pending& pending, ncclResult_t result, const char* name = "") noexcept {
  const bool made = result == ncclSuccess || result == ncclInProgress;
  ncclComm_t handle = made && pending.place != nullptr ? *pending.place : nullptr;
  if (handle == nullptr) {
    if (pending.made_as != 0) remove_comm(pending.made_as);
    return;
  }
  const auto word = reinterpret_cast<std::uint64_t>(handle);
  // One that is still being made does not like to be asked.
  const Facts facts = result == ncclSuccess ? ask(handle) : Facts{};
  Comm* comm = nullptr;
  if (pending.made_as != 0) {
    comm = bind_comm(pending.made_as, word);
    if (comm != nullptr && facts.device >= 0 && facts.device != comm->device) {
      describe_again(*comm, comm->rank, comm->nranks, facts.device);
    }
  } else {
    NewComm fresh;
    fresh.handle = word;
    fresh.kind = pending.kind;
    fresh.library = trace::Library::kNccl;
    fresh.rank = facts.rank;
    fresh.nranks = facts.nranks;
    fresh.device = facts.device >= 0 ? facts.device : pending.device;
    fresh.identity = pending.identity;
    fresh.name = name;
    Comm parent;
    parent.id = pending.parent;
    fresh.parent = &parent;
    const std::uint32_t id = add_comm(fresh);
    if (id != 0 && pending.alias != 0) write_alias(id, pending.alias);
    comm = find_comm(word);
  }
  if (comm == nullptr || pending.record == nullptr) return;
  if (std::atomic_ref(pending.record->commit).load(std::memory_order_relaxed) != pending.commit) return;
  std::atomic_ref(pending.record->aux).store(comm->id, std::memory_order_relaxed);
}

}  // namespace

Comm* adopt(ncclComm_t handle) noexcept {
  const Facts facts = ask(handle);
  NewComm made;
  made.handle = reinterpret_cast<std::uint64_t>(handle);
  made.library = trace::Library::kNccl;
  made.rank = facts.rank;
  made.nranks = facts.nranks;
  made.device = facts.device;
  made.flags = trace::kCommAdopted;
  add_comm(made);
  return find_comm(made.handle);
}

void learn_members(Comm& comm, ncclComm_t handle) noexcept {
  const Facts facts = ask(handle);
  if (facts.nranks > 0) describe_again(comm, facts.rank, facts.nranks, facts.device >= 0 ? facts.device : comm.device);
}

void Recording::begin() noexcept {
  if (t_nccl.epoch != g_recorder.epoch) {
    t_nccl.epoch = g_recorder.epoch;
    t_nccl.depth = 0;
    t_nccl.pending = 0;
  }
  if (g_named_epoch == g_recorder.epoch) return;
  if (g_recorder.epoch > 1) {
    g_pending_lock.unlock();
    for (Pending& place : g_pending) place.thread = nullptr;
    reset_pairs();
    cuda::reset_streams();
  }
  begin_file();
}

void Recording::enter_creation(OpKind kind, const trace::CreationRecord& arguments) noexcept {
  call_.kind = kind;
  call_.extensions = 1;
  scope_.reserve(1);
  if (auto* record = scope_.extension<trace::CreationRecord>(0, trace::RecordKind::kCreation)) {
    *record = arguments;
    record->kind = static_cast<std::uint8_t>(trace::RecordKind::kCreation);
  }
  scope_.enter(call_);
}

void Recording::enter_local(OpKind kind) noexcept {
  call_.kind = kind;
  call_.seq = trace::kNoPosition;
  scope_.enter(call_);
}

Pending Recording::pending(ncclComm_t* place, OpKind kind, std::uint64_t made_as,
                           std::uint64_t identity) const noexcept {
  trace::CallRecord* record = scope_.record();
  return Pending{.place = place,
                 .made_as = made_as,
                 .identity = identity,
                 .alias = 0,
                 .parent = call_.comm != nullptr && made_as == 0 ? call_.comm->id : 0,
                 .device = cuda::t_device,
                 .kind = kind,
                 .commit = record != nullptr ? record->commit : 0,
                 .record = record,
                 .thread = nullptr};
}

// ---- groups

void Recording::group_start() noexcept {
  after_ = After::kGroupStart;
  call_.count = t_nccl.depth + 1;
  enter_local(OpKind::kGroupStart);
}

void Recording::group_end() noexcept {
  after_ = After::kGroupEnd;
  call_.count = t_nccl.depth;
  call_.aux = t_nccl.depth != 0 ? t_nccl.launch : 0;
  enter_local(OpKind::kGroupEnd);
}

void Recording::group_simulate_end() noexcept {
  call_.detail = 1;  // nothing of the group is issued
  group_end();
}

void Recording::finish_group(ncclResult_t result) noexcept {
  NcclThread& thread = t_nccl;
  if (thread.depth == 0 || --thread.depth != 0) return;
  for (Pending made; pop_pending(made);) settle(made, result);
}

// ---- communicators

void Recording::init(ncclComm_t* comm, int nranks, const ncclUniqueId* ids, int id_count, int rank,
                     const ncclConfig_t* config) noexcept {
  NewComm made;
  made.handle = next_made_as();
  made.library = trace::Library::kNccl;
  made.rank = rank;
  made.nranks = nranks;
  made.device = cuda::t_device;
  const bool readable = ids != nullptr && id_count >= 1 && (id_count == 1 || id_count <= nranks);
  made.identity = readable ? hash_ids(ids, id_count) : 0;
  made.name = name_of(config);
  call_.aux = add_comm(made);
  call_.comm = find_comm(made.handle);
  trace::CreationRecord arguments;
  arguments.members = nranks;
  arguments.key = rank;
  arguments.group_hash = made.identity;
  arguments.blocking = blocking_of(config);
  enter_creation(OpKind::kInit, arguments);
  made_ = pending(comm, OpKind::kInit, made.handle, made.identity);
  name_ = "";  // written above
  after_ = After::kMade;
}

// No id that other processes could have: they are all here, one a device.
void Recording::init_all(ncclComm_t* comms, int devices, const int* list) noexcept {
  after_ = After::kInitAll;
  const std::uint32_t number = g_init_alls.fetch_add(1, std::memory_order_relaxed);
  const trace::FileHeader& header = *g_recorder.map.header;
  const std::uint64_t identity =
      trace::mix(trace::mix(header.start_unix_ns ^ static_cast<std::uint64_t>(header.pid), header.start_ticks), number + 1U);
  for (int i = 0; i < devices && i < kMostDevices; ++i) {
    NewComm made;
    made.handle = next_made_as();
    made.library = trace::Library::kNccl;
    made.rank = i;
    made.nranks = devices;
    made.device = list != nullptr ? list[i] : i;
    made.identity = identity;
    if (i > 0) scope_.again();
    call_ = Call{};
    call_.aux = add_comm(made);
    call_.comm = find_comm(made.handle);
    trace::CreationRecord arguments;
    arguments.members = devices;
    arguments.key = i;
    arguments.group_hash = identity;
    enter_creation(OpKind::kInit, arguments);
    push_pending(pending(comms + i, OpKind::kInit, made.handle, identity));
  }
}

void Recording::split(ncclComm_t comm, int color, int key, ncclComm_t* made, const ncclConfig_t* config) noexcept {
  use(comm);
  trace::CreationRecord arguments;
  arguments.color = color == kSplitNoColor ? trace::kNoColor : color;
  arguments.key = key;
  arguments.blocking = blocking_of(config);
  const std::uint32_t number = call_.comm != nullptr ? call_.comm->children[0]++ : 0;
  const std::uint64_t identity =
      child_identity(call_.comm, OpKind::kSplit, number, static_cast<std::uint32_t>(color));
  enter_creation(OpKind::kSplit, arguments);
  made_ = pending(color == kSplitNoColor ? nullptr : made, OpKind::kSplit, 0, identity);
  name_ = name_of(config);
  after_ = After::kMade;
}

// The ranks that are left out do not call: it has no position among the calls of all.
void Recording::shrink(ncclComm_t comm, const int* excluded, int count, ncclComm_t* made,
                       const ncclConfig_t* config, int flags) noexcept {
  use(comm);
  call_.has_position = false;
  call_.seq = trace::kNoPosition;
  std::uint64_t hash = 0;
  const bool readable = excluded != nullptr && count > 0 && call_.comm != nullptr && count < call_.comm->nranks;
  for (int i = 0; readable && i < count; ++i) {
    hash = trace::mix(hash ^ static_cast<std::uint64_t>(static_cast<std::uint32_t>(excluded[i])),
                      static_cast<std::uint64_t>(i) + 1);
  }
  trace::CreationRecord arguments;
  arguments.members = call_.comm != nullptr ? call_.comm->nranks - count : 0;
  arguments.tag = static_cast<std::uint32_t>(flags);
  arguments.group_hash = hash;
  arguments.blocking = blocking_of(config);
  const std::uint32_t number = call_.comm != nullptr ? call_.comm->children[1]++ : 0;
  const std::uint64_t identity = child_identity(call_.comm, OpKind::kShrink, number, hash);
  enter_creation(OpKind::kShrink, arguments);
  made_ = pending(made, OpKind::kShrink, 0, identity);
  name_ = name_of(config);
  after_ = After::kMade;
}

// Members of the old communicator know the parent, new ones the id; one of the old has both, and its record joins them.
void Recording::grow(ncclComm_t comm, int nranks, const ncclUniqueId* id, int rank, ncclComm_t* made,
                     const ncclConfig_t* config) noexcept {
  use(comm);
  trace::CreationRecord arguments;
  arguments.members = nranks;
  arguments.key = rank;
  arguments.group_hash = id != nullptr ? hash_ids(id, 1) : 0;
  arguments.blocking = blocking_of(config);
  std::uint64_t identity = arguments.group_hash;
  if (call_.comm != nullptr) {
    identity = child_identity(call_.comm, OpKind::kGrow, call_.comm->children[2]++, static_cast<std::uint32_t>(nranks));
  } else {
    call_.has_position = false;
    call_.seq = trace::kNoPosition;
  }
  enter_creation(OpKind::kGrow, arguments);
  made_ = pending(made, OpKind::kGrow, 0, identity);
  if (call_.comm != nullptr) made_.alias = arguments.group_hash;
  name_ = name_of(config);
  after_ = After::kMade;
}

void Recording::window_register(ncclComm_t comm, std::size_t size, int flags) noexcept {
  use(comm);
  call_.kind = OpKind::kWindowRegister;
  call_.count = size;  // may differ between the members
  call_.aux = static_cast<std::uint32_t>(flags);
  scope_.enter(call_);
}

void Recording::finalize(ncclComm_t comm) noexcept {
  use(comm);
  call_.kind = OpKind::kFinalize;
  scope_.enter(call_);
}

void Recording::ends(OpKind kind, ncclComm_t comm) noexcept {
  if (comm != nullptr) call_.comm = find_comm(to_word(comm));
  enter_local(kind);
  if (call_.comm != nullptr) remove_comm(to_word(comm));
}

void Recording::revoke(ncclComm_t comm) noexcept {
  use(comm);
  enter_local(OpKind::kRevoke);
}

void Recording::opaque(const char* name, ncclComm_t comm) noexcept {
  use(comm);
  call_.kind = OpKind::kOpaque;
  call_.seq = trace::kNoPosition;
  call_.count = 1;
  call_.extensions = 1;
  scope_.reserve(1);
  if (auto* record = scope_.extension<trace::NameRecord>(0, trace::RecordKind::kName)) {
    std::strncpy(record->name, name, sizeof record->name - 1);
  }
  scope_.enter(call_);
}

void Recording::meets(const char* name, ncclComm_t comm) noexcept {
  use(comm);
  call_.kind = OpKind::kBarrier;
  call_.extensions = 1;
  scope_.reserve(1);
  if (auto* record = scope_.extension<trace::NameRecord>(0, trace::RecordKind::kName)) {
    std::strncpy(record->name, name, sizeof record->name - 1);
  }
  scope_.enter(call_);
}

void Recording::wait_signal(int descriptors, const ncclWaitSignalDesc_t* descriptor, ncclComm_t comm,
                            cudaStream_t stream) noexcept {
  use(comm);
  constexpr int kMost = 4096;
  const bool readable = descriptor != nullptr && descriptors > 0 && descriptors <= kMost;
  for (int i = 0; readable && i < descriptors; ++i) {
    if (descriptor[i].opCnt > 0) call_.count += static_cast<std::uint64_t>(descriptor[i].opCnt);
  }
  if (readable && descriptors == 1) call_.peer = descriptor[0].peer;
  call_.seq = trace::kNoPosition;
  call_.aux = static_cast<std::uint32_t>(descriptors);
  enter(OpKind::kWaitSignal, stream);
}

// ---- operators: their numbers are not recorded, what they mean is

void Recording::redop_made(const ncclRedOp_t* op, ncclDataType_t type, ncclScalarResidence_t residence,
                           ncclComm_t comm) noexcept {
  after_ = After::kRedop;
  redop_ = op;
  redop_type_ = type;
  residence_ = residence;
  comm_ = to_word(comm);
}

void Recording::redop_gone(ncclRedOp_t op, ncclComm_t comm) noexcept {
  after_ = After::kSilent;
  g_redops.remove(redop_key(op, to_word(comm)));
}

void Recording::finish_slowly(ncclResult_t result) noexcept {
  NcclThread& thread = t_nccl;
  switch (after_) {
    case After::kGroupStart:
      if (result == ncclSuccess) {
        if (thread.depth == 0) thread.launch = g_launches.fetch_add(1, std::memory_order_relaxed) + 1;
        ++thread.depth;
        scope_.set_aux(thread.launch);
      }
      break;
    case After::kGroupEnd:
      finish_group(result);
      break;
    case After::kMade:
      scope_.forget_collective();
      if (thread.depth == 0) {
        settle(made_, result, name_);
      } else if (result == ncclSuccess || result == ncclInProgress) {
        push_pending(made_);
      }
      break;
    case After::kInitAll:
      scope_.forget_collective();
      for (Pending made; pop_pending(made);) {
        settle(made, result);
        trace::CallRecord* record = made.record;
        if (record == nullptr || record == scope_.record() || record->commit != made.commit) continue;
        record->result = static_cast<std::uint8_t>(result);
        std::atomic_ref(record->return_ticks).store(ticks(), std::memory_order_release);
      }
      break;
    case After::kRedop:
      if (result == ncclSuccess && redop_ != nullptr) learn_premul_sum(*redop_, comm_, redop_type_, residence_);
      scope_.leave();
      return;
    case After::kSilent:
      scope_.leave();
      return;
    case After::kNothing:
      break;
  }
  scope_.finish(static_cast<int>(result));
}

}  // namespace lockstep::shim::nccl
