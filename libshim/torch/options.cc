// See the header.
#include "torch/options.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "recorder.h"

namespace lockstep::shim::torch {
namespace {

constexpr std::size_t kLooked = 48;  // bytes at the beginning of a struct; the fields are among its first
constexpr std::int32_t kNowhere = -1;

struct Row {
  const char* name;
  bool has_reduction;
  bool has_root;
};
constexpr Row kRows[] = {
    {"AllreduceOptions", true, false}, {"AllreduceCoalescedOptions", true, false}, {"ReduceOptions", true, true},
    {"ReduceScatterOptions", true, false}, {"BroadcastOptions", false, true}, {"GatherOptions", false, true},
    {"ScatterOptions", false, true},
};
static_assert(sizeof kRows / sizeof kRows[0] == static_cast<std::size_t>(Struct::kCount));

struct Place {
  std::int32_t reduction = kNowhere;
  std::int32_t root = kNowhere;
};
constinit Place g_places[static_cast<std::size_t>(Struct::kCount)];

// The kernel copies, so that an address that is none is an error and not the end of the host.
bool copy_safely(const void* from, void* to, std::size_t bytes) noexcept {
  iovec local{to, bytes};
  iovec remote{const_cast<void*>(from), bytes};
  return syscall(SYS_process_vm_readv, getpid(), &local, 1UL, &remote, 1UL, 0UL) == static_cast<long>(bytes);
}

struct Bytes {
  unsigned char at[kLooked];
};

// The C++ object behind a pybind11 object stands behind the object's head.
bool look_at(PyObject* object, std::size_t head, Bytes& bytes) noexcept {
  const void* value = nullptr;
  return copy_safely(reinterpret_cast<const std::byte*>(object) + head, &value, sizeof value) && value != nullptr &&
         copy_safely(value, bytes.at, sizeof bytes.at);
}

bool set(PyObject* object, const char* field, PyObject* value) noexcept {
  const bool done = value != nullptr && g_python.PyObject_SetAttrString(object, field, value) == 0;
  g_python.PyErr_Clear();
  return done;
}

// The only byte that is each of the three numbers in turn.
std::int32_t find_reduction(PyObject* object, std::size_t head, PyObject* operators) noexcept {
  constexpr const char* kNames[] = {"MAX", "SUM", "MIN"};
  constexpr unsigned char kValues[] = {4, 0, 3};
  Bytes seen[3];
  for (int i = 0; i < 3; ++i) {
    const Ref op = attribute(operators, kNames[i]);
    if (!set(object, "reduceOp", op.get()) || !look_at(object, head, seen[i])) return kNowhere;
  }
  std::int32_t place = kNowhere;
  for (std::size_t at = 0; at < kLooked; ++at) {
    if (seen[0].at[at] != kValues[0] || seen[1].at[at] != kValues[1] || seen[2].at[at] != kValues[2]) continue;
    if (place != kNowhere) return kNowhere;
    place = static_cast<std::int32_t>(at);
  }
  return place;
}

std::int32_t find_root(PyObject* object, std::size_t head) noexcept {
  constexpr long kValues[] = {0x1F2E3, 0x2D3C4};
  Bytes seen[2];
  for (int i = 0; i < 2; ++i) {
    const Ref number(g_python.PyLong_FromLong(kValues[i]));
    if (!set(object, "rootRank", number.get()) || !look_at(object, head, seen[i])) return kNowhere;
  }
  std::int32_t place = kNowhere;
  for (std::size_t at = 0; at + sizeof(std::int64_t) <= kLooked; at += sizeof(std::int64_t)) {
    std::int64_t found[2];
    for (int i = 0; i < 2; ++i) std::memcpy(&found[i], seen[i].at + at, sizeof found[i]);
    if (found[0] != kValues[0] || found[1] != kValues[1]) continue;
    if (place != kNowhere) return kNowhere;
    place = static_cast<std::int32_t>(at);
  }
  return place;
}

const Place& place_of(Struct kind) noexcept { return g_places[static_cast<std::size_t>(kind)]; }

}  // namespace

bool learn_options(PyObject* module) noexcept {
  const ErrnoKeeper keep;
  const Ref builtins = attribute(loaded_module("builtins"), "object");
  const Ref basic = attribute(builtins.get(), "__basicsize__");
  Ref operators = attribute(module, "ReduceOp");
  if (Ref numbers = attribute(operators.get(), "RedOpType")) operators = static_cast<Ref&&>(numbers);
  const Ref nothing(g_python.PyTuple_New(0));
  if (!basic || !operators || !nothing) return false;
  const long head = g_python.PyLong_AsLong(basic.get());
  g_python.PyErr_Clear();
  if (head < 16 || head > 64) return false;
  bool all = true;
  for (std::size_t i = 0; i < sizeof kRows / sizeof kRows[0]; ++i) {
    const Ref type = attribute(module, kRows[i].name);
    if (!type) continue;
    const Ref object(g_python.PyObject_Call(type.get(), nothing.get(), nullptr));
    g_python.PyErr_Clear();
    if (!object) continue;
    const auto bytes = static_cast<std::size_t>(head);
    if (kRows[i].has_reduction) g_places[i].reduction = find_reduction(object.get(), bytes, operators.get());
    if (kRows[i].has_root) g_places[i].root = find_root(object.get(), bytes);
    all = all && (g_places[i].reduction != kNowhere || !kRows[i].has_reduction) && (g_places[i].root != kNowhere || !kRows[i].has_root);
  }
  return all;
}

std::uint32_t reduction_in(Struct kind, const void* options) noexcept {
  const std::int32_t place = place_of(kind).reduction;
  if (place == kNowhere || options == nullptr) return kUnknownReduction;
  return *(static_cast<const unsigned char*>(options) + place);
}

std::int64_t root_in(Struct kind, const void* options) noexcept {
  const std::int32_t place = place_of(kind).root;
  if (place == kNowhere || options == nullptr) return kUnknownRoot;
  std::int64_t root = kUnknownRoot;
  std::memcpy(&root, static_cast<const std::byte*>(options) + place, sizeof root);
  return root >= 0 && root <= 0x7FFF'FFFF ? root : kUnknownRoot;
}

}  // namespace lockstep::shim::torch
