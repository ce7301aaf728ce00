// See the header.
#include "torch/constructions.h"

#include <cstdlib>
#include <cstring>

#include "config.h"
#include "torch/groups.h"
#include "torch/python_sites.h"
#include "torch/recording.h"
#include "torch/stand_in.h"

namespace lockstep::shim::torch {
namespace {

constexpr const char* kModule = "torch.distributed.distributed_c10d";

struct Function {
  const char* name;
  OpKind kind;
};
constexpr Function kFunctions[] = {
    {"init_process_group", OpKind::kInit},
    {"new_group", OpKind::kNewGroup},
    {"split_group", OpKind::kSplit},
    {"destroy_process_group", OpKind::kDestroy},
};
constexpr std::size_t kFunctionCount = sizeof kFunctions / sizeof kFunctions[0];
static_assert(kFunctionCount <= kMostStandIns);

/// Borrowed; the argument as the caller passed it, null if it did not.
PyObject* argument(PyObject* arguments, PyObject* keywords, PySsize position, const char* name) noexcept {
  PyObject* given = keywords != nullptr ? g_python.PyDict_GetItemString(keywords, name) : nullptr;
  if (given == nullptr && position < g_python.PyTuple_Size(arguments)) given = g_python.PyTuple_GetItem(arguments, position);
  g_python.PyErr_Clear();
  return given == g_python.none ? nullptr : given;
}

long number(PyObject* object, long fallback) noexcept {
  if (object == nullptr) return fallback;
  const long value = g_python.PyLong_AsLong(object);
  if (g_python.PyErr_Occurred() == nullptr) return value;
  g_python.PyErr_Clear();
  return fallback;
}

struct Place {
  long rank = -1;
  long ranks = -1;
};

/// What init_process_group is told, or finds in the environment.
Place place_in_job(PyObject* arguments, PyObject* keywords) noexcept {
  Place place{number(argument(arguments, keywords, 4, "rank"), -1), number(argument(arguments, keywords, 3, "world_size"), -1)};
  if (place.ranks < 0) place.ranks = parse_number(std::getenv("WORLD_SIZE"), -1);
  if (place.rank < 0) place.rank = parse_number(std::getenv("RANK"), -1);
  return place;
}

/// Children of torch.multiprocessing.spawn have no launcher: the first of their calls says who they are, before the file has a name.
void take_place(PyObject* arguments, PyObject* keywords) noexcept {
  const ErrorKeeper keep;
  const auto [rank, ranks] = place_in_job(arguments, keywords);
  if (recorder_is_on() || rank < 0 || ranks <= rank || ranks > 1 << 16) return;
  take_rank(g_recorder.config, static_cast<std::int32_t>(rank), static_cast<std::int32_t>(ranks));
}

Ref default_group() noexcept {
  const Ref members = attribute(loaded_module(kModule), "GroupMember");
  Ref world = attribute(members.get(), "WORLD");
  return world.get() != g_python.none ? static_cast<Ref&&>(world) : Ref();
}

/// Number and hash of the ranks passed, whatever their order; nothing of the program runs but the items of a list, tuple or range.
void describe_members(PyObject* ranks, trace::CreationRecord& record) noexcept {
  if (ranks == nullptr || g_python.PySequence_Check(ranks) == 0) return;
  const PySsize count = g_python.PySequence_Size(ranks);
  g_python.PyErr_Clear();
  if (count <= 0 || count > 1 << 20) return;
  std::uint64_t hash = 0;
  for (PySsize i = 0; i < count; ++i) {
    const Ref item(g_python.PySequence_GetItem(ranks, i));
    const long rank = number(item.get(), -1);
    g_python.PyErr_Clear();
    if (rank < 0) return;
    hash += trace::mix(static_cast<std::uint64_t>(rank), 1);
  }
  record.members = static_cast<std::int32_t>(count);
  record.group_hash = hash;
}

struct Construction {
  OpKind kind;
  Comm* comm = nullptr;
  trace::CreationRecord record;
  bool of_all = true;  ///< all members of `comm` make the call
};

Construction describe(OpKind kind, PyObject* arguments, PyObject* keywords) noexcept {
  Construction made{.kind = kind, .record = {}};
  switch (kind) {
    case OpKind::kInit: {
      const auto [mine, size] = place_in_job(arguments, keywords);
      if (size > 0 && size <= 1 << 16 && mine >= 0 && mine < size) {
        made.comm = add_world(static_cast<std::int32_t>(mine), static_cast<std::int32_t>(size));
      }
      made.record.members = static_cast<std::int32_t>(size);
      made.record.key = static_cast<std::int32_t>(mine);
      break;
    }
    case OpKind::kNewGroup: {
      const Ref world = default_group();
      made.comm = comm_of_group(world.get());
      describe_members(argument(arguments, keywords, 0, "ranks"), made.record);
      const PyObject* local = argument(arguments, keywords, 4, "use_local_synchronization");
      made.of_all = local == nullptr || local == g_python.no;
      if (!made.of_all) made.kind = OpKind::kCreateGroup;
      break;
    }
    case OpKind::kDestroy: {
      const Ref world = default_group();
      PyObject* group = argument(arguments, keywords, 0, "group");
      made.comm = comm_of_group(group != nullptr ? group : world.get());
      made.of_all = false;
      break;
    }
    default: {
      const Ref world = default_group();
      PyObject* parent = argument(arguments, keywords, 0, "parent_pg");
      made.comm = comm_of_group(parent != nullptr ? parent : world.get());
      break;
    }
  }
  return made;
}

/// The communicator that the call made; null = this rank is no member.
Comm* made_by(OpKind kind, PyObject* result) noexcept {
  const Ref world = kind == OpKind::kInit ? default_group() : Ref();
  PyObject* group = kind == OpKind::kInit ? world.get() : result;
  return is_group(group) ? comm_of_new_group(group) : nullptr;
}

PyObject* call(std::size_t index, PyObject* original, PyObject* arguments, PyObject* keywords) noexcept {
  const OpKind kind = kFunctions[index].kind;
  if (kind == OpKind::kInit) take_place(arguments, keywords);
  if (!recording_is_possible()) return g_python.PyObject_Call(original, arguments, keywords);
  begin_file();
  Construction made;
  {
    const ErrorKeeper keep;
    made = describe(kind, arguments, keywords);
  }
  const std::uint32_t site_before = t_thread.scope_site;
  t_thread.scope_site = python_site(nullptr);
  CallScope scope(__builtin_frame_address(0), __builtin_return_address(0));
  const bool recorded = scope.active() && made.comm != nullptr;
  if (recorded) {
    Call record{.kind = made.kind, .comm = made.comm, .seq = trace::kNoPosition, .has_position = made.of_all};
    if (kind != OpKind::kDestroy) record.extensions = 1;
    scope.reserve(record.extensions);
    if (record.extensions != 0) {
      if (auto* creation = scope.extension<trace::CreationRecord>(0, trace::RecordKind::kCreation)) {
        made.record.kind = creation->kind;
        *creation = made.record;
      }
    }
    scope.enter(record);
  }
  // What happens below are calls of their own: the libraries make communicators there.
  if (scope.active()) scope.open_for_others();
  t_thread.scope_site = site_before;
  const std::uint32_t backends_before = t_torch.backends;
  ++t_torch.constructing;
  PyObject* result = g_python.PyObject_Call(original, arguments, keywords);
  --t_torch.constructing;
  Comm* comm = nullptr;
  if (result != nullptr && kind != OpKind::kDestroy) {
    const ErrorKeeper keep;
    comm = made_by(kind, result);
    if (recorded && comm != nullptr) scope.set_aux(comm->id);
  }
  bind_new_backends(backends_before, comm);
  if (recorded) scope.finish(result != nullptr ? 0 : 255);
  return result;
}

// ---- noticing that the module is there

constinit PyObject* g_finder = nullptr;
constinit PyObject* g_finders_before = nullptr;  ///< the list that sys.meta_path was
constinit std::uint32_t g_questions = 0;
constexpr std::uint32_t kMostQuestions = 20000;

// Modules that were waiting for this one have taken the functions over already (torch.distributed.device_mesh is one).
void replace_where_taken(const char* name, PyObject* original, PyObject* ours) noexcept {
  constexpr char kPackage[] = "torch.distributed";
  PySsize at = 0;
  PyObject* key = nullptr;
  PyObject* module = nullptr;
  while (g_python.PyDict_Next(g_python.PyImport_GetModuleDict(), &at, &key, &module) != 0) {
    const char* module_name = text_of(key);
    if (module_name == nullptr || std::strncmp(module_name, kPackage, sizeof kPackage - 1) != 0) continue;
    const Ref names = attribute(module, "__dict__");
    if (!names || g_python.PyDict_GetItemString(names.get(), name) != original) continue;
    g_python.PyDict_SetItemString(names.get(), name, ours);
  }
  g_python.PyErr_Clear();
}

void stand_before_all(PyObject* module) noexcept {
  for (std::size_t i = 0; i < kFunctionCount; ++i) {
    const Ref original = attribute(module, kFunctions[i].name);
    if (!original) continue;
    const Ref ours = make_stand_in(i, original.get(), call);
    if (!ours) continue;
    g_python.PyObject_SetAttrString(module, kFunctions[i].name, ours.get());
    replace_where_taken(kFunctions[i].name, original.get(), ours.get());
  }
}

// The list as it was comes back, with what others put into ours meanwhile. Ours stays whole: somebody is walking it.
void stop_asking() noexcept {
  PyObject* now = g_python.PySys_GetObject("meta_path");
  const PySsize at = now != nullptr ? g_python.PySequence_Index(now, g_finder) : -1;
  g_python.PyErr_Clear();
  if (at >= 0) {
    const Ref others(g_python.PySequence_List(now));
    if (others && g_python.PySequence_DelItem(others.get(), at) == 0 &&
        g_python.PyList_SetSlice(g_finders_before, 0, g_python.PySequence_Size(g_finders_before), others.get()) == 0) {
      g_python.PySys_SetObject("meta_path", g_finders_before);
    }
  }
  g_python.PyErr_Clear();
  g_python.Py_DecRef(g_finder);
  g_python.Py_DecRef(g_finders_before);
  g_finder = g_finders_before = nullptr;
}

bool is_whole(PyObject* module) noexcept {
  const Ref spec = attribute(module, "__spec__");
  const Ref initializing = attribute(spec.get(), "_initializing");
  return !initializing || initializing.get() == g_python.no;
}

// find_spec of a finder that never finds anything: it is asked whenever something is imported for the first time.
PyObject* find_nothing(PyObject*, PyObject*, PyObject*) noexcept {
  if (g_finder != nullptr) {
    const ErrorKeeper keep;
    PyObject* module = loaded_module(kModule);
    const bool there = module != nullptr && is_whole(module);
    if (there) stand_before_all(module);
    if (there || ++g_questions > kMostQuestions) stop_asking();
  }
  g_python.Py_IncRef(g_python.none);
  return g_python.none;
}
constinit PyMethod g_find_definition = {"find_spec", find_nothing, kVarargs | kKeywords, nullptr};

}  // namespace

void await_constructions() noexcept {
  if (PyObject* module = loaded_module(kModule); module != nullptr && is_whole(module)) return stand_before_all(module);
  PyObject* finders = g_python.PySys_GetObject("meta_path");
  // An object with one attribute: of the type that sys.implementation has.
  PyObject* example = g_python.PySys_GetObject("implementation");
  if (finders == nullptr || example == nullptr) return;
  const Ref type(g_python.PyObject_Type(example));
  const Ref find(g_python.PyCFunction_NewEx(&g_find_definition, nullptr, nullptr));
  const Ref nothing(g_python.PyTuple_New(0));
  const Ref attributes(g_python.PyDict_New());
  if (!type || !find || !nothing || !attributes) return g_python.PyErr_Clear();
  g_python.PyDict_SetItemString(attributes.get(), "find_spec", find.get());
  Ref finder(g_python.PyObject_Call(type.get(), nothing.get(), attributes.get()));
  const Ref list(g_python.PySequence_List(finders));
  if (finder && list && g_python.PyList_Insert(list.get(), 0, finder.get()) == 0) {
    g_python.Py_IncRef(finders);
    g_finders_before = finders;
    g_finder = finder.release();
    g_python.PySys_SetObject("meta_path", list.get());
  }
  g_python.PyErr_Clear();
}

}  // namespace lockstep::shim::torch
