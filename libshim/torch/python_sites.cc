// See the header.
#include "torch/python_sites.h"

#include <atomic>
#include <cstring>

#include "call_site.h"
#include "recorder.h"
#include "spin_lock.h"
#include "torch/scope.h"
#include "trace_writer.h"

namespace lockstep::shim::torch {
namespace {

constexpr std::uint32_t kMostFrames = 24;
constexpr std::uint32_t kSlots = 8192;

struct Slot {
  std::atomic<std::uint64_t> hash{0};
  std::uint32_t site = 0;
};
constinit Slot g_slots[kSlots] = {};
constinit std::uint32_t g_used = 0;
constinit SpinLock g_lock;

struct Chain {
  std::uint32_t frames = 0;
  PyObject* code[kMostFrames];  ///< references
  PyObject* frame[kMostFrames];
  std::uint64_t hash = 0;
};

int position_in(PyObject* frame) noexcept {
  return g_python.PyFrame_GetLasti != nullptr ? g_python.PyFrame_GetLasti(frame)
                                              : g_python.PyFrame_GetLineNumber(frame);
}

void walk(Chain& chain) noexcept {
  PyObject* frame = g_python.PyEval_GetFrame();
  if (frame != nullptr) g_python.Py_IncRef(frame);
  while (frame != nullptr && chain.frames < kMostFrames) {
    PyObject* code = g_python.PyFrame_GetCode(frame);
    chain.hash = trace::mix(chain.hash ^ reinterpret_cast<std::uint64_t>(code),
                            static_cast<std::uint64_t>(static_cast<std::uint32_t>(position_in(frame))) + 1);
    chain.code[chain.frames] = code;
    chain.frame[chain.frames++] = frame;
    frame = g_python.PyFrame_GetBack(frame);
  }
  if (frame != nullptr) g_python.Py_DecRef(frame);
}

void let_go(const Chain& chain, bool keep_code) noexcept {
  for (std::uint32_t i = 0; i < chain.frames; ++i) {
    g_python.Py_DecRef(chain.frame[i]);
    if (!keep_code) g_python.Py_DecRef(chain.code[i]);
  }
}

struct Line {
  std::uint32_t number = 0;
  const char* file = "";
  const char* function = "";
  std::size_t file_bytes = 0;
  std::size_t function_bytes = 0;
};

// Long names are cut: a name is for reading, and one site must not fill the area.
constexpr std::size_t kLongestText = 400;

std::size_t length_of(const char* text) noexcept {
  const std::size_t length = std::strlen(text);
  return length < kLongestText ? length : kLongestText;
}

char* put_text(char* to, const char* text, std::size_t bytes) noexcept {
  std::memcpy(to, text, bytes);
  to[bytes] = '\0';
  return to + bytes + 1;
}

// The record; its site id, or 0. `names` keep the texts of `lines` alive.
std::uint32_t write_site(const Line* lines, std::uint32_t count) noexcept {
  std::size_t bytes = sizeof(trace::PythonSiteRecord);
  for (std::uint32_t i = 0; i < count; ++i) bytes += sizeof(std::uint32_t) + lines[i].file_bytes + lines[i].function_bytes + 2;
  auto* record = static_cast<trace::PythonSiteRecord*>(
      reserve_side(trace::SideKind::kPythonSite, static_cast<std::uint32_t>(bytes)));
  if (record == nullptr) return 0;
  record->site = next_site_id();
  record->frames = count;
  char* to = reinterpret_cast<char*>(record + 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::memcpy(to, &lines[i].number, sizeof lines[i].number);
    to = put_text(to + sizeof lines[i].number, lines[i].file, lines[i].file_bytes);
    to = put_text(to, lines[i].function, lines[i].function_bytes);
  }
  commit_side(record);
  return record->site;
}

std::uint32_t write_chain(const Chain& chain, const char* native) noexcept {
  Line lines[kMostFrames + 1];
  Ref names[kMostFrames * 2];
  std::uint32_t used = 0;
  if (native != nullptr) {
    lines[used].function = native;
    lines[used++].function_bytes = length_of(native);
  }
  const ErrorKeeper keep;
  for (std::uint32_t i = 0; i < chain.frames; ++i) {
    Line& line = lines[used++];
    names[2 * i] = attribute(chain.code[i], "co_filename");
    Ref& function = names[2 * i + 1];
    function = attribute(chain.code[i], "co_qualname");
    if (!function) function = attribute(chain.code[i], "co_name");
    if (const char* text = text_of(names[2 * i].get())) line.file = text;
    if (const char* text = text_of(function.get())) line.function = text;
    line.file_bytes = length_of(line.file);
    line.function_bytes = length_of(line.function);
    const int number = g_python.PyFrame_GetLineNumber(chain.frame[i]);
    line.number = number > 0 ? static_cast<std::uint32_t>(number) : 0;
  }
  return write_site(lines, used);
}

/// Site under `hash`; null = not there. `free` is where it could go.
const Slot* find(std::uint64_t hash, Slot** free) noexcept {
  std::uint64_t at = hash;
  for (std::uint32_t tries = 0; tries < 64; ++tries, ++at) {
    Slot& slot = g_slots[at % kSlots];
    const std::uint64_t found = slot.hash.load(std::memory_order_acquire);
    if (found == hash) return &slot;
    if (found == 0) {
      *free = &slot;
      return nullptr;
    }
  }
  return nullptr;
}

std::uint64_t with_native(std::uint64_t hash, const char* native) noexcept {
  if (native != nullptr) hash = trace::mix(hash ^ trace::text_hash(native, std::strlen(native)), 77);
  return hash == 0 ? 1 : hash;
}

/// Site of `chain` with `native` on top, written if it is new. Takes over what the chain holds.
std::uint32_t intern(const Chain& chain, const char* native) noexcept {
  const std::uint64_t hash = with_native(chain.hash, native);
  Slot* free = nullptr;
  if (const Slot* known = find(hash, &free)) {
    let_go(chain, false);
    return known->site;
  }
  std::uint32_t site = 0;
  bool kept = false;
  {
    const SpinGuard guard(g_lock);
    const Slot* known = find(hash, &free);
    if (known != nullptr) {
      site = known->site;
    } else if (free != nullptr && g_used < kSlots * 3 / 4) {
      // Nothing below runs code of the program: names are plain attributes of code objects.
      site = write_chain(chain, native);
      free->site = site;
      free->hash.store(hash, std::memory_order_release);
      ++g_used;
      kept = true;  // the code objects: another one at the same address would pass for it
    }
  }
  let_go(chain, kept);
  return site;
}

}  // namespace

std::uint32_t python_site(const char* native) noexcept {
  Chain chain;
  walk(chain);
  if (chain.frames == 0 && native == nullptr) return 0;
  return intern(chain, native);
}

std::uint32_t site_from_outside(const char* native) noexcept {
  if (python_is_installed() && !is_finalizing() && g_python.PyGILState_GetThisThreadState() != nullptr) {
    const int state = g_python.PyGILState_Ensure();
    const std::uint32_t site = python_site(native);
    g_python.PyGILState_Release(state);
    return site;
  }
  return native != nullptr ? intern(Chain{}, native) : 0;
}

void reset_python_sites() noexcept {
  g_lock.unlock();
  for (Slot& slot : g_slots) slot.hash.store(0, std::memory_order_relaxed);
  g_used = 0;
}

}  // namespace lockstep::shim::torch
