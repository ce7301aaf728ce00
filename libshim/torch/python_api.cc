// See the header.
#include "torch/python_api.h"

#include "original.h"

namespace lockstep::shim::torch {

constinit PythonApi g_python;

namespace {

// Where an executable embeds an interpreter as a library that came by dlopen.
const char* const kLibraries[] = {"libpython3", nullptr};

template <class Pointer>
bool find(Pointer& place, const char* name) noexcept {
  place = reinterpret_cast<Pointer>(find_visible(name, kLibraries));
  return place != nullptr;
}

}  // namespace

const char* load_python_api() noexcept {
#define X(result, name, parameters) \
  if (!find(g_python.name, #name)) return #name;
  LOCKSTEP_PYTHON_NEEDED(X)
#undef X
#define X(result, name, parameters) find(g_python.name, #name);
  LOCKSTEP_PYTHON_WANTED(X)
#undef X
  g_python.none = static_cast<PyObject*>(find_visible("_Py_NoneStruct", kLibraries));
  g_python.no = static_cast<PyObject*>(find_visible("_Py_FalseStruct", kLibraries));
  return g_python.none != nullptr && g_python.no != nullptr ? nullptr : "_Py_NoneStruct";
}

Ref attribute(PyObject* object, const char* name) noexcept {
  if (object == nullptr) return Ref();
  Ref found(g_python.PyObject_GetAttrString(object, name));
  if (!found) g_python.PyErr_Clear();
  return found;
}

PyObject* loaded_module(const char* name) noexcept {
  PyObject* modules = g_python.PyImport_GetModuleDict();
  return modules != nullptr ? g_python.PyDict_GetItemString(modules, name) : nullptr;
}

const char* text_of(PyObject* object) noexcept {
  if (object == nullptr) return nullptr;
  const char* text = g_python.PyUnicode_AsUTF8AndSize(object, nullptr);
  if (text == nullptr) g_python.PyErr_Clear();
  return text;
}

bool is_finalizing() noexcept {
  if (g_python.Py_IsInitialized() == 0) return true;
  if (g_python.Py_IsFinalizing != nullptr) return g_python.Py_IsFinalizing() != 0;
  return g_python._Py_IsFinalizing != nullptr && g_python._Py_IsFinalizing() != 0;
}

}  // namespace lockstep::shim::torch
