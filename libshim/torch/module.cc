// How torch's Python binding is noticed and taken part in: torch/_C calls `initModule` of libtorch_python through the loader, so a definition
// here is called when, and only when, a process imports torch. Nothing is imported, no search path and no variable is touched.
#include <cstring>
#include <utility>

#include "original.h"
#include "torch/constructions.h"
#include "torch/options.h"
#include "torch/original.h"
#include "torch/python_api.h"
#include "torch/recording.h"
#include "torch/scope.h"
#include "trace_writer.h"

namespace lockstep::shim::torch {
namespace {

// Methods that Python code calls; a class lacks some of them, depending on the version. `group` says that `self` is a process group.
struct Method {
  const char* type;
  const char* name;
  bool on_group;
};
#define LOCKSTEP_TORCH_METHODS(X)                                                                                     \
  X(broadcast) X(allreduce) X(allreduce_coalesced) X(reduce) X(allgather) X(_allgather_base) X(all_gather_single)     \
  X(allgather_coalesced) X(allgather_into_tensor_coalesced) X(all_gather_single_coalesced) X(gather) X(scatter)       \
  X(reduce_scatter) X(_reduce_scatter_base) X(reduce_scatter_single) X(reduce_scatter_tensor_coalesced)               \
  X(reduce_scatter_single_coalesced) X(alltoall_base) X(all_to_all_single) X(alltoall) X(send) X(recv)                \
  X(recv_anysource) X(barrier) X(monitored_barrier) X(_end_coalescing)
constexpr Method kMethods[] = {
#define X(name) {"ProcessGroup", #name, true}, {"Backend", #name, false},
    LOCKSTEP_TORCH_METHODS(X)
#undef X
    {"ProcessGroupGloo", "monitored_barrier", false},
    {"Work", "wait", false},
    {"Work", "synchronize", false},
};
// Functions of the module whose first argument is a process group.
constexpr Method kFunctions[] = {
    {nullptr, "_broadcast_coalesced", true},
    {nullptr, "_verify_params_across_processes", true},
};
constexpr std::size_t kMethodCount = sizeof kMethods / sizeof kMethods[0];
constexpr std::size_t kFunctionCount = sizeof kFunctions / sizeof kFunctions[0];
constexpr std::size_t kFewestMethods = 10;  // of a torch that is like those that are known
constexpr std::size_t kCallables = kMethodCount + kFunctionCount;

struct Callable {
  PyObject* original = nullptr;
  PyMethod definition = {};
  bool on_group = false;
};
constinit Callable g_callables[kCallables] = {};
constinit PyObject* g_initialize = nullptr;  ///< torch._C._c10d_init as torch made it
constinit PyObject* g_binding = nullptr;     ///< torch._C

// Adds no frame of Python: what the program prints of its stack stays as it was.
template <std::size_t kIndex>
PyObject* call(PyObject*, PyObject* arguments, PyObject* keywords) noexcept {
  const Callable& callable = g_callables[kIndex];
  PyObject* group = nullptr;
  if (callable.on_group && g_python.PyTuple_Size(arguments) > 0) group = g_python.PyTuple_GetItem(arguments, 0);
  PythonScope scope(group);
  PyObject* result = g_python.PyObject_Call(callable.original, arguments, keywords);
  scope.end(result == nullptr);
  return result;
}

template <std::size_t... kIndex>
constexpr void fill_functions(PyFunction (&functions)[sizeof...(kIndex)], std::index_sequence<kIndex...>) {
  ((functions[kIndex] = call<kIndex>), ...);
}

/// Whether the class itself has it, not only one that it is derived from.
bool has_own(PyObject* type, const char* name) noexcept {
  const Ref dictionary = attribute(type, "__dict__");
  const Ref key(g_python.PyUnicode_FromString(name));
  if (!dictionary || !key) return false;
  const Ref found(g_python.PyObject_GetItem(dictionary.get(), key.get()));
  g_python.PyErr_Clear();
  return static_cast<bool>(found);
}

/// Puts a callable of ours in front of `owner.name`.
bool stand_before(PyObject* owner, const Method& method, std::size_t index, PyFunction function, bool is_method) noexcept {
  if (is_method && !has_own(owner, method.name)) return false;
  Ref original = attribute(owner, method.name);
  if (!original) return false;
  Callable& callable = g_callables[index];
  const Ref doc = attribute(original.get(), "__doc__");
  const char* text = text_of(doc.get());
  const Ref module_name = attribute(original.get(), "__module__");
  callable.definition = PyMethod{method.name, function, kVarargs | kKeywords, text};
  callable.on_group = method.on_group;
  // What it is bound to is of no use to ours, but shows where the original is printed.
  const Ref bound_to = attribute(original.get(), "__self__");
  Ref ours(g_python.PyCFunction_NewEx(&callable.definition, bound_to.get(), module_name.get()));
  if (ours && is_method) ours = Ref(g_python.PyInstanceMethod_New(ours.get()));
  if (!ours) return false;
  callable.original = original.get();
  if (g_python.PyObject_SetAttrString(owner, method.name, ours.get()) != 0) return false;
  // For good: others may hold what was made here, and the text of its description.
  original.release();
  if (text != nullptr) g_python.Py_IncRef(doc.get());
  return true;
}

/// How many methods there are.
std::size_t install(PyObject* module) noexcept {
  PyFunction functions[kCallables];
  fill_functions(functions, std::make_index_sequence<kCallables>());
  std::size_t installed = 0;
  for (std::size_t i = 0; i < kMethodCount; ++i) {
    const Ref type = attribute(module, kMethods[i].type);
    if (type && stand_before(type.get(), kMethods[i], i, functions[i], true)) ++installed;
    g_python.PyErr_Clear();
  }
  for (std::size_t i = 0; i < kFunctionCount; ++i) {
    stand_before(module, kFunctions[i], kMethodCount + i, functions[kMethodCount + i], false);
    g_python.PyErr_Clear();
  }
  return installed;
}

void note(const char* what, const char* which) noexcept { note_missing("lines of Python and process groups", what, which); }

// A torch whose functions have other names is not seen at all: names of each kind that every known version has.
void look_for_backends() noexcept {
  for (const char* name : {"_ZN4c10d16ProcessGroupGloo9allreduceERSt6vectorIN2at6TensorESaIS3_EERKNS_16AllreduceOptionsE",
                           "_ZN4c10d16ProcessGroupGloo9broadcastERSt6vectorIN2at6TensorESaIS3_EERKNS_16BroadcastOptionsE",
                           "_ZN4c10d16ProcessGroupGloo4sendERSt6vectorIN2at6TensorESaIS3_EEii",
                           "_ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE"}) {
    if (find_original(name, kTorchLibraries) == nullptr) return note_missing("calls", "there is no ", name);
  }
}

void learn_version() noexcept {
  const Ref version = attribute(loaded_module("torch.version"), "__version__");
  static constinit char text[48] = {};
  if (const char* said = text_of(version.get())) {
    std::strncpy(text, said, sizeof text - 1);
    set_torch_version(text);
  }
}

PyObject* initialize(PyObject*, PyObject* arguments, PyObject* keywords) noexcept {
  PyObject* result = g_python.PyObject_Call(g_initialize, arguments, keywords);
  if (result == nullptr) return result;
  const ErrorKeeper keep;
  g_python.PyObject_SetAttrString(g_binding, "_c10d_init", g_initialize);
  if (PyObject* module = loaded_module("torch._C._distributed_c10d")) {
    learn_version();
    if (attribute(module, "ProcessGroupGloo")) look_for_backends();
    if (install(module) < kFewestMethods) note("this torch has few of the known methods", "");
    if (!learn_options(module)) note("this torch hides its options", "");
    await_constructions();
    set_python_installed();
  } else {
    note("it has no module ", "torch._C._distributed_c10d");
  }
  g_python.PyErr_Clear();
  return result;
}
constinit PyMethod g_initialize_definition = {"_c10d_init", initialize, kVarargs | kKeywords, nullptr};

/// `binding` is torch._C, just made; the interpreter's lock is held.
void notice_torch(PyObject* binding) noexcept {
  if (binding == nullptr || g_initialize != nullptr) return;
  if (const char* missing = load_python_api()) return note("the interpreter has no ", missing);
  const ErrorKeeper keep;
  Ref original = attribute(binding, "_c10d_init");
  if (!original) return;  // a torch without its distributed part
  const Ref ours(g_python.PyCFunction_NewEx(&g_initialize_definition, nullptr, nullptr));
  if (!ours) return g_python.PyErr_Clear();
  g_initialize = original.get();
  g_binding = binding;
  if (g_python.PyObject_SetAttrString(binding, "_c10d_init", ours.get()) == 0) original.release();
  else g_initialize = nullptr;
  g_python.PyErr_Clear();
}

}  // namespace
}  // namespace lockstep::shim::torch

// Other libraries may have a function of this name: each caller gets the one that it would have got without us.
extern "C" [[gnu::visibility("default")]] void* initModule(void* a, void* b, void* c, void* d, void* e, void* f) {
  using namespace lockstep::shim;
  bool is_torch = false;
  const auto real = reinterpret_cast<void* (*)(void*, void*, void*, void*, void*, void*)>(
      find_beside(__builtin_return_address(0), "initModule", "libtorch_python", is_torch));
  if (real == nullptr) return nullptr;
  void* result = real(a, b, c, d, e, f);
  if (is_torch && g_recorder.phase != nullptr && g_recorder.config.python) torch::notice_torch(static_cast<torch::PyObject*>(result));
  return result;
}
