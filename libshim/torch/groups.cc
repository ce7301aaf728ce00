// See the header.
#include "torch/groups.h"

#include <cstring>
#include <initializer_list>

#include "recorder.h"
#include "spin_lock.h"
#include "torch/recording.h"
#include "torch/scope.h"
#include "trace_writer.h"

namespace lockstep::shim::torch {
namespace {

constexpr std::int32_t kMostMembers = 1 << 16;

// Backend -> communicator.
struct Backend {
  std::atomic<std::uint64_t> address{0};
  std::atomic<Comm*> comm{nullptr};
};
constexpr std::uint32_t kBackends = 4096;
constinit Backend g_backends[kBackends] = {};
constinit SpinLock g_backends_lock;

// How many groups of one name and one list of members there were.
struct NameCount {
  std::uint64_t hash = 0;
  std::uint32_t groups = 0;
};
constexpr std::uint32_t kNames = 4096;
constinit NameCount g_names[kNames] = {};

// Members while they are collected; the interpreter's lock guards it, and its own where that does not exist.
constinit SpinLock g_members_lock;
constinit std::int32_t g_members[kMostMembers];

std::uint32_t number_of(std::uint64_t hash) noexcept {
  std::uint64_t at = hash;
  for (std::uint32_t tries = 0; tries < 64; ++tries, ++at) {
    NameCount& name = g_names[at % kNames];
    if (name.hash == 0) name.hash = hash;
    if (name.hash == hash) return name.groups++;
  }
  return 0;
}

/// torch's table `name`, by group: a module-level dict in every version.
PyObject* entry_of(const char* table_name, PyObject* group) noexcept {
  PyObject* module = loaded_module("torch.distributed.distributed_c10d");
  const Ref table = attribute(module, table_name);
  if (!table) return nullptr;
  PyObject* entry = g_python.PyDict_GetItem(table.get(), group);
  g_python.PyErr_Clear();
  return entry;
}

/// Number that a method without arguments returns; `fallback` for anything else.
long ask(PyObject* object, const char* method, long fallback) noexcept {
  const Ref function = attribute(object, method);
  const Ref nothing(g_python.PyTuple_New(0));
  if (!function || !nothing) return fallback;
  const Ref result(g_python.PyObject_Call(function.get(), nothing.get(), nullptr));
  const long value = result ? g_python.PyLong_AsLong(result.get()) : fallback;
  if (g_python.PyErr_Occurred() == nullptr) return value;
  g_python.PyErr_Clear();
  return fallback;
}

/// Fills g_members from {global rank: group rank}; false where it is not one to one.
bool collect_members(PyObject* ranks, std::int32_t size) noexcept {
  for (std::int32_t i = 0; i < size; ++i) g_members[i] = -1;
  PySsize at = 0;
  PyObject* global = nullptr;
  PyObject* local = nullptr;
  std::int32_t found = 0;
  while (g_python.PyDict_Next(ranks, &at, &global, &local) != 0) {
    const long member = g_python.PyLong_AsLong(global);
    const long place = g_python.PyLong_AsLong(local);
    if (place < 0 || place >= size || member < 0 || g_members[place] != -1) break;
    g_members[place] = static_cast<std::int32_t>(member);
    ++found;
  }
  g_python.PyErr_Clear();
  return found == size;
}

std::uint64_t fold(const std::int32_t* members, std::int32_t count) noexcept {
  std::uint64_t hash = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    hash = trace::mix(hash ^ static_cast<std::uint32_t>(members[i]), static_cast<std::uint64_t>(i) + 1);
  }
  return hash;
}

PyObject* group_died(PyObject*, PyObject*, PyObject*) noexcept;
constinit PyMethod g_died = {"lockstep_group_died", group_died, kVarargs | kKeywords, nullptr};

// Groups whose end is watched: their weak references, which keep themselves alive here.
struct Watched {
  PyObject* reference = nullptr;
  std::uint64_t group = 0;
};
constexpr std::uint32_t kMostWatched = 4096;
constinit Watched g_watched[kMostWatched] = {};

// Another object may get the address: then it is another group.
void forget_group(std::uint64_t group) noexcept {
  Comm* comm = find_comm(group);
  if (comm == nullptr) return;
  {
    const SpinGuard guard(g_backends_lock);
    for (Backend& backend : g_backends) {
      if (backend.comm.load(std::memory_order_relaxed) == comm) backend.comm.store(nullptr, std::memory_order_release);
    }
  }
  if (recorder_is_on()) remove_comm(group);
}

PyObject* group_died(PyObject*, PyObject* arguments, PyObject*) noexcept {
  PyObject* reference = g_python.PyTuple_GetItem(arguments, 0);
  for (Watched& watched : g_watched) {
    if (watched.reference == nullptr || watched.reference != reference) continue;
    watched.reference = nullptr;
    forget_group(watched.group);
    g_python.Py_DecRef(reference);
    break;
  }
  g_python.Py_IncRef(g_python.none);
  return g_python.none;
}

void watch(PyObject* group) noexcept {
  for (Watched& watched : g_watched) {
    if (watched.reference != nullptr) continue;
    const Ref callback(g_python.PyCFunction_NewEx(&g_died, nullptr, nullptr));
    if (callback) watched.reference = g_python.PyWeakref_NewRef(group, callback.get());
    watched.group = reinterpret_cast<std::uint64_t>(group);
    break;
  }
  g_python.PyErr_Clear();
}

std::uint64_t identity_of(const char* name, std::int32_t size) noexcept {
  const std::uint64_t hash = trace::mix(fold(g_members, size) ^ trace::text_hash(name, std::strlen(name)), 0x746F'7263'68U);
  const std::uint64_t identity = trace::mix(hash, std::uint64_t{number_of(hash)} + 1);
  return identity != 0 ? identity : 1;
}

// The launcher's variables may be those of the process that started this one: what torch was told is the truth.
void learn_job_rank(std::int32_t rank, std::int32_t size) noexcept {
  trace::FileHeader& header = *g_recorder.map.header;
  const bool from_launcher = header.job_rank < 0 || header.job_rank == g_recorder.config.rank;
  if (rank < 0 || !from_launcher) return;
  header.job_rank = rank;
  header.job_ranks = size;
}

bool is_one_of(const char* begin, const char* end, std::initializer_list<const char*> names) noexcept {
  const auto length = static_cast<std::size_t>(end - begin);
  for (const char* name : names) {
    if (std::strlen(name) == length && std::strncmp(begin, name, length) == 0) return true;
  }
  return false;
}

// Calls of a backend that nobody here knows leave no record: such a trace must not pass for a whole one. "gloo", or "cpu:gloo,cuda:nccl".
void look_at_backend(PyObject* group) noexcept {
  static constinit std::atomic<bool> told{false};
  PyObject* entry = entry_of("_pg_map", group);
  const char* name = entry != nullptr && g_python.PyTuple_Size(entry) > 0 ? text_of(g_python.PyTuple_GetItem(entry, 0)) : nullptr;
  g_python.PyErr_Clear();
  if (name == nullptr) return;
  for (const char* begin = name; *begin != '\0';) {
    const char* end = begin;
    while (*end != '\0' && *end != ':' && *end != ',') ++end;
    const bool is_device = *end == ':';
    if (!is_device && end != begin && !is_one_of(begin, end, {"gloo", "nccl", "mpi", "ucc", "undefined"})) {
      if (!told.exchange(true)) note_missing("calls", "a process group is of the backend ", name);
      return;
    }
    begin = *end == '\0' ? end : end + 1;
  }
}

/// Cold.
Comm* add_group(PyObject* group, bool from_the_start) noexcept {
  const ErrorKeeper keep;
  const ErrnoKeeper keep_errno;
  NewComm made;
  made.handle = reinterpret_cast<std::uint64_t>(group);
  made.library = trace::Library::kTorch;
  // We are there before the first group is made and every call comes to us: only a child after a fork meets a group late.
  made.flags = from_the_start || g_recorder.epoch == 1 ? 0 : trace::kCommAdopted;
  made.rank = static_cast<std::int32_t>(ask(group, "rank", -1));
  made.nranks = static_cast<std::int32_t>(ask(group, "size", 0));
  PyObject* name = entry_of("_pg_names", group);
  const char* text = text_of(name);
  made.name = text != nullptr && std::strlen(text) < 512 ? text : "";
  const Ref world = attribute(loaded_module("torch.distributed.distributed_c10d"), "GroupMember");
  const Ref default_group = attribute(world.get(), "WORLD");
  made.kind = default_group.get() == group ? OpKind::kInit : OpKind::kNewGroup;

  PyObject* ranks = entry_of("_pg_group_ranks", group);
  {
    const SpinGuard guard(g_members_lock);
    if (ranks != nullptr && text != nullptr && made.nranks > 0 && made.nranks <= kMostMembers && collect_members(ranks, made.nranks)) {
      made.members = g_members;
      made.identity = identity_of(text, made.nranks);
    }
    add_comm(made);
  }
  Comm* comm = find_comm(made.handle);
  if (comm == nullptr) return nullptr;
  watch(group);
  look_at_backend(group);
  const Ref description = attribute(group, "group_desc");
  if (const char* said = text_of(description.get()); said != nullptr && *said != '\0' && std::strcmp(said, "undefined") != 0) {
    write_text(trace::SideKind::kCommName, comm->id, said);
  }
  if (made.kind == OpKind::kInit) learn_job_rank(made.rank, made.nranks);
  return comm;
}

Backend* place_of(const void* backend, bool make) noexcept {
  const auto address = reinterpret_cast<std::uint64_t>(backend);
  std::uint64_t at = spread(address);
  for (std::uint32_t tries = 0; tries < 64; ++tries, ++at) {
    Backend& place = g_backends[at % kBackends];
    std::uint64_t found = place.address.load(std::memory_order_acquire);
    if (found == 0 && make && place.address.compare_exchange_strong(found, address)) found = address;
    if (found == address) return &place;
    if (found == 0) return nullptr;
  }
  return nullptr;
}

}  // namespace

Comm* comm_of_group(PyObject* group) noexcept {
  if (group == nullptr || group == g_python.none) return nullptr;
  if (Comm* known = find_comm(reinterpret_cast<std::uint64_t>(group))) return known;
  return add_group(group, false);
}

Comm* comm_of_new_group(PyObject* group) noexcept {
  if (Comm* known = find_comm(reinterpret_cast<std::uint64_t>(group))) return known;
  return add_group(group, true);
}

bool is_group(PyObject* object) noexcept {
  return object != nullptr && object != g_python.none && entry_of("_pg_names", object) != nullptr;
}

Comm* add_world(std::int32_t rank, std::int32_t size) noexcept {
  if (size > kMostMembers) return nullptr;
  static constinit std::atomic<std::uint64_t> made_so_far{0};
  NewComm made;
  made.handle = std::uint64_t{1} << 62 | (made_so_far.fetch_add(1, std::memory_order_relaxed) + 1) << 32 | 0x746F'7263U;
  made.library = trace::Library::kTorch;
  made.rank = rank;
  made.nranks = size;
  made.name = "init";
  const SpinGuard guard(g_members_lock);
  for (std::int32_t i = 0; i < size; ++i) g_members[i] = i;
  made.members = g_members;
  made.identity = identity_of(made.name, size);
  add_comm(made);
  learn_job_rank(rank, size);
  return find_comm(made.handle);
}

Comm* comm_of_backend(const void* backend) noexcept {
  Backend* place = place_of(backend, true);
  if (place == nullptr) return t_torch.group;
  // One without members was made up when nobody knew better.
  Comm* known = place->comm.load(std::memory_order_acquire);
  if (known != nullptr && (known->nranks > 0 || t_torch.group == nullptr)) return known;
  Comm* comm = t_torch.group;
  if (comm == nullptr) {
    NewComm made;
    made.handle = reinterpret_cast<std::uint64_t>(backend);
    made.library = trace::Library::kTorch;
    made.flags = trace::kCommAdopted;
    made.rank = -1;
    add_comm(made);
    comm = find_comm(made.handle);
  }
  place->comm.store(comm, std::memory_order_release);
  return comm;
}

void note_new_backend(const void* backend) noexcept {
  if (Backend* place = place_of(backend, false)) place->comm.store(nullptr, std::memory_order_release);
  TorchThread& thread = t_torch;
  if (thread.constructing == 0) return;
  if (thread.backends < kMostBackends) thread.backend[thread.backends] = backend;
  ++thread.backends;
}

void bind_new_backends(std::uint32_t first, Comm* comm) noexcept {
  TorchThread& thread = t_torch;
  const std::uint32_t last = thread.backends < kMostBackends ? thread.backends : kMostBackends;
  for (std::uint32_t i = first; i < last && comm != nullptr; ++i) {
    if (Backend* place = place_of(thread.backend[i], true)) place->comm.store(comm, std::memory_order_release);
  }
  thread.backends = first;
}

void reset_groups() noexcept {
  g_backends_lock.unlock();
  g_members_lock.unlock();
  for (Backend& backend : g_backends) backend.comm.store(nullptr, std::memory_order_relaxed);
  for (NameCount& name : g_names) name = NameCount{};
}

}  // namespace lockstep::shim::torch
