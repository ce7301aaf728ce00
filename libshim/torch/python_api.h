// CPython's C API, found by name in the interpreter that runs: no header and no library of Python is needed to build. Functions of the stable
// ABI, and a few older than it that every interpreter exports.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::shim::torch {

struct PyObject;  // nothing of it is looked at
using PySsize = std::ptrdiff_t;
using PyFunction = PyObject* (*)(PyObject* self, PyObject* arguments, PyObject* keywords);

/// PyMethodDef.
struct PyMethod {
  const char* name;
  PyFunction function;
  int flags;
  const char* doc;
};
inline constexpr int kVarargs = 1, kKeywords = 2;  // METH_VARARGS, METH_KEYWORDS

/// PyType_Slot and PyType_Spec.
struct PyTypeSlot {
  int slot;
  void* value;
};
struct PyTypeSpec {
  const char* name;
  int basic_size;
  int item_size;
  unsigned flags;
  PyTypeSlot* slots;
};

// X(result, name, parameters): without these nothing is installed.
#define LOCKSTEP_PYTHON_NEEDED(X)                                                     \
  X(void, Py_IncRef, (PyObject*))                                                     \
  X(void, Py_DecRef, (PyObject*))                                                     \
  X(int, Py_IsInitialized, ())                                                        \
  X(PyObject*, PyErr_Occurred, ())                                                    \
  X(void, PyErr_Fetch, (PyObject**, PyObject**, PyObject**))                          \
  X(void, PyErr_Restore, (PyObject*, PyObject*, PyObject*))                           \
  X(void, PyErr_Clear, ())                                                            \
  X(PyObject*, PyImport_GetModuleDict, ())                                            \
  X(PyObject*, PySys_GetObject, (const char*))                                        \
  X(PyObject*, PyObject_Call, (PyObject*, PyObject*, PyObject*))                      \
  X(PyObject*, PyObject_GetAttrString, (PyObject*, const char*))                      \
  X(int, PyObject_SetAttrString, (PyObject*, const char*, PyObject*))                 \
  X(PyObject*, PyObject_GetItem, (PyObject*, PyObject*))                              \
  X(int, PyObject_SetAttr, (PyObject*, PyObject*, PyObject*))                         \
  X(PyObject*, PyObject_Repr, (PyObject*))                                            \
  X(PyObject*, PyMethod_New, (PyObject*, PyObject*))                                  \
  X(int, PySys_SetObject, (const char*, PyObject*))                                   \
  X(int, PyList_SetSlice, (PyObject*, PySsize, PySsize, PyObject*))                   \
  X(PyObject*, PySequence_List, (PyObject*))                                          \
  X(int, PySequence_Check, (PyObject*))                                               \
  X(PySsize, PySequence_Size, (PyObject*))                                            \
  X(PyObject*, PySequence_GetItem, (PyObject*, PySsize))                              \
  X(PyObject*, PyObject_Type, (PyObject*))                                            \
  X(PyObject*, PyDict_New, ())                                                        \
  X(PyObject*, PyDict_GetItemString, (PyObject*, const char*))                        \
  X(int, PyDict_SetItemString, (PyObject*, const char*, PyObject*))                   \
  X(PyObject*, PyDict_GetItem, (PyObject*, PyObject*))                                \
  X(int, PyDict_Next, (PyObject*, PySsize*, PyObject**, PyObject**))                  \
  X(PyObject*, PyTuple_New, (PySsize))                                                \
  X(PySsize, PyTuple_Size, (PyObject*))                                               \
  X(PyObject*, PyTuple_GetItem, (PyObject*, PySsize))                                 \
  X(int, PyList_Insert, (PyObject*, PySsize, PyObject*))                              \
  X(PySsize, PySequence_Index, (PyObject*, PyObject*))                                \
  X(int, PySequence_DelItem, (PyObject*, PySsize))                                    \
  X(PyObject*, PyLong_FromLong, (long))                                               \
  X(long, PyLong_AsLong, (PyObject*))                                                 \
  X(PyObject*, PyUnicode_FromString, (const char*))                                   \
  X(const char*, PyUnicode_AsUTF8AndSize, (PyObject*, PySsize*))                      \
  X(PyObject*, PyCFunction_NewEx, (PyMethod*, PyObject*, PyObject*))                  \
  X(PyObject*, PyInstanceMethod_New, (PyObject*))                                     \
  X(PyObject*, PyWeakref_NewRef, (PyObject*, PyObject*))                              \
  X(int, PyGILState_Ensure, ())                                                       \
  X(void, PyGILState_Release, (int))                                                  \
  X(void*, PyGILState_GetThisThreadState, ())                                         \
  X(PyObject*, PyEval_GetFrame, ())                                                   \
  X(int, PyFrame_GetLineNumber, (PyObject*))                                          \
  X(PyObject*, PyFrame_GetCode, (PyObject*)) /* 3.9 */                                \
  X(PyObject*, PyFrame_GetBack, (PyObject*)) /* 3.9 */

// Null where this interpreter has none.
#define LOCKSTEP_PYTHON_WANTED(X)                                                     \
  X(int, PyFrame_GetLasti, (PyObject*))  /* 3.11 */                                   \
  X(int, Py_IsFinalizing, ())            /* 3.13 */                                   \
  X(int, _Py_IsFinalizing, ())           /* before */                                 \
  X(PyObject*, PyType_FromSpec, (PyTypeSpec*))

struct PythonApi {
#define X(result, name, parameters) result (*name) parameters = nullptr;
  LOCKSTEP_PYTHON_NEEDED(X)
  LOCKSTEP_PYTHON_WANTED(X)
#undef X
  PyObject* none = nullptr;
  PyObject* no = nullptr;  ///< False
};
extern constinit PythonApi g_python;

/// Finds all of it; the first missing name, or null. Takes the loader's lock. Cold.
const char* load_python_api() noexcept;

/// A reference that is given back.
class Ref {
 public:
  explicit Ref(PyObject* object = nullptr) noexcept : object_(object) {}
  Ref(Ref&& other) noexcept : object_(other.release()) {}
  Ref& operator=(Ref&& other) noexcept {
    PyObject* old = object_;
    object_ = other.release();
    if (old != nullptr) g_python.Py_DecRef(old);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) g_python.Py_DecRef(object_);
  }
  PyObject* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  PyObject* release() noexcept {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  PyObject* object_;
};

/// Puts the host's pending exception aside and back; what we caused in between is gone.
class ErrorKeeper {
 public:
  ErrorKeeper() noexcept { g_python.PyErr_Fetch(&type_, &value_, &trace_); }
  ~ErrorKeeper() { g_python.PyErr_Restore(type_, value_, trace_); }
  ErrorKeeper(const ErrorKeeper&) = delete;
  ErrorKeeper& operator=(const ErrorKeeper&) = delete;

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* trace_ = nullptr;
};

/// New reference or null, never an exception. Not for the path of a call.
Ref attribute(PyObject* object, const char* name) noexcept;
/// Borrowed, null if it is not imported.
PyObject* loaded_module(const char* name) noexcept;
/// Text of a str object, which owns it; null for anything else.
const char* text_of(PyObject* object) noexcept;
bool is_finalizing() noexcept;

}  // namespace lockstep::shim::torch
