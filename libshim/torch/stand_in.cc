// See the header.
#include "torch/stand_in.h"

#include <cstring>

namespace lockstep::shim::torch {
namespace {

// Numbers of typeslots.h and of the flags, part of the stable ABI.
constexpr int kSlotCall = 50, kSlotGet = 54, kSlotGetAttribute = 58, kSlotRepr = 66, kSlotSetAttribute = 69, kSlotMembers = 72;
constexpr unsigned kFlags = 1U << 18;  // Py_TPFLAGS_DEFAULT
constexpr int kMemberSize = 19;        // Py_T_PYSSIZET
constexpr int kReadOnly = 1;

/// PyMemberDef.
struct PyMember {
  const char* name;
  int type;
  PySsize offset;
  int flags;
  const char* doc;
};

struct StandIn {
  PyObject* object = nullptr;
  PyObject* original = nullptr;
  StandInCall call = nullptr;
};
constinit StandIn g_stand_ins[kMostStandIns] = {};
constinit PyObject* g_type = nullptr;

std::size_t index_of(const PyObject* object) noexcept {
  std::size_t index = 0;
  while (index < kMostStandIns && g_stand_ins[index].object != object) ++index;
  return index;
}

PyObject* original_of(const PyObject* object) noexcept {
  const std::size_t index = index_of(object);
  return index < kMostStandIns ? g_stand_ins[index].original : nullptr;
}

PyObject* call(PyObject* self, PyObject* arguments, PyObject* keywords) noexcept {
  const std::size_t index = index_of(self);
  if (index == kMostStandIns) return nullptr;
  const StandIn& stand_in = g_stand_ins[index];
  return stand_in.call(index, stand_in.original, arguments, keywords);
}

// Pickled by name, as functions are: a text says so.
PyObject* reduce(PyObject* self, PyObject*, PyObject*) noexcept {
  return g_python.PyObject_GetAttrString(self, "__qualname__");
}
constinit PyMethod g_reduce = {"__reduce_ex__", reduce, kVarargs | kKeywords, nullptr};

PyObject* get_attribute(PyObject* self, PyObject* name) noexcept {
  PyObject* original = original_of(self);
  const char* text = g_python.PyUnicode_AsUTF8AndSize(name, nullptr);
  if (original == nullptr || text == nullptr) return nullptr;
  if (std::strcmp(text, "__reduce_ex__") == 0) return g_python.PyCFunction_NewEx(&g_reduce, self, nullptr);
  return g_python.PyObject_GetAttrString(original, text);
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) noexcept {
  PyObject* original = original_of(self);
  return original != nullptr ? g_python.PyObject_SetAttr(original, name, value) : -1;
}

PyObject* repr(PyObject* self) noexcept { return g_python.PyObject_Repr(original_of(self)); }

// As an attribute of a class: bound as the function would be, by itself.
PyObject* get(PyObject* self, PyObject* instance, PyObject*) noexcept {
  if (instance == nullptr || instance == g_python.none) {
    g_python.Py_IncRef(self);
    return self;
  }
  return g_python.PyMethod_New(self, instance);
}

bool make_type() noexcept {
  if (g_type != nullptr) return true;
  if (g_python.PyType_FromSpec == nullptr) return false;
  const Ref base = attribute(loaded_module("builtins"), "object");
  const Ref size = attribute(base.get(), "__basicsize__");
  if (!size) return false;
  const long head = g_python.PyLong_AsLong(size.get());
  if (head < 16 || head > 64) return false;
  static constinit PyMember members[2] = {};
  members[0] = PyMember{"__weaklistoffset__", kMemberSize, head, kReadOnly, nullptr};
  static constinit PyTypeSlot slots[7] = {};
  const PyTypeSlot filled[7] = {{kSlotCall, reinterpret_cast<void*>(call)},
                                {kSlotGet, reinterpret_cast<void*>(get)},
                                {kSlotGetAttribute, reinterpret_cast<void*>(get_attribute)},
                                {kSlotRepr, reinterpret_cast<void*>(repr)},
                                {kSlotSetAttribute, reinterpret_cast<void*>(set_attribute)},
                                {kSlotMembers, members},
                                {0, nullptr}};
  std::memcpy(slots, filled, sizeof slots);
  static constinit PyTypeSpec spec = {};
  spec = PyTypeSpec{"builtins.function", static_cast<int>(head + static_cast<long>(sizeof(void*))), 0, kFlags, slots};
  g_type = g_python.PyType_FromSpec(&spec);
  g_python.PyErr_Clear();
  return g_type != nullptr;
}

}  // namespace

Ref make_stand_in(std::size_t index, PyObject* original, StandInCall function) noexcept {
  if (index >= kMostStandIns || g_stand_ins[index].object != nullptr || !make_type()) return Ref();
  const Ref nothing(g_python.PyTuple_New(0));
  Ref object(nothing ? g_python.PyObject_Call(g_type, nothing.get(), nullptr) : nullptr);
  g_python.PyErr_Clear();
  if (!object) return object;
  g_python.Py_IncRef(original);
  g_python.Py_IncRef(object.get());
  g_stand_ins[index] = StandIn{object.get(), original, function};
  return object;
}

}  // namespace lockstep::shim::torch
