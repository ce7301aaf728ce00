// What torch's binding looks like to the loader, and nothing more: a library that has `initModule`, which makes torch._C. Python's API is declared here, for
// one build serves every interpreter.
#include <cstddef>

namespace {

struct Object;
using Function = Object* (*)(Object*, Object*);
struct Method {
  const char* name;
  Function function;
  int flags;
  const char* doc;
};
struct Module {
  std::size_t references = 1;
  void* type = nullptr;
  void* init = nullptr;
  std::ptrdiff_t index = 0;
  void* copy = nullptr;
  const char* name;
  const char* doc = nullptr;
  std::ptrdiff_t size = -1;
  Method* methods;
  void* slots = nullptr;
  void* traverse = nullptr;
  void* clear = nullptr;
  void* free = nullptr;
};

}  // namespace

extern "C" {
Object* PyModule_Create2(Module*, int);
Object* PyImport_ImportModule(const char*);
void Py_DecRef(Object*);
Object* PyBool_FromLong(long);
[[gnu::visibility("default")]] void* initModule();
}

static Object* make_distributed(Object*, Object*) {
  Object* made = PyImport_ImportModule("torch._fake_c10d");
  if (made == nullptr) return nullptr;
  Py_DecRef(made);
  return PyBool_FromLong(1);
}

static Method g_methods[] = {{"_c10d_init", make_distributed, 4 /* METH_NOARGS */, nullptr}, {nullptr, nullptr, 0, nullptr}};
static Module g_module = {.name = "torch._C", .methods = g_methods};

void* initModule() { return PyModule_Create2(&g_module, 1013); }
