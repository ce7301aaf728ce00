#include "call_site.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "config.h"
#include "recorder.h"
#include "text.h"
#include "trace_writer.h"

namespace lockstep::shim {

constinit Site g_sites[kSiteSlots] = {};

namespace {

constinit SpinLock g_lock;
constinit std::atomic<std::uint32_t> g_next_site{1};

struct Module {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t file_offset = 0;
  std::uint32_t id = 0;
};
constexpr std::uint32_t kMaxModules = 1024;
constinit Module g_modules[kMaxModules] = {};
constinit std::uint32_t g_module_count = 0;

Module* find_module(std::uint64_t address) noexcept {
  // Newest first: a file that was unmapped may have left its addresses to another.
  for (std::uint32_t i = g_module_count; i > 0; --i) {
    if (address >= g_modules[i - 1].begin && address < g_modules[i - 1].end) return &g_modules[i - 1];
  }
  return nullptr;
}

// Build id of an ELF file, read from the file and not from memory, which may be unmapped at any time. Returns
// its length.
std::uint32_t read_build_id(const char* path, unsigned char (&id)[64]) noexcept {
#if __SIZEOF_POINTER__ == 8
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::uint32_t length = 0;
  Elf64_Ehdr head{};
  const bool is_elf = pread(file, &head, sizeof head, 0) == sizeof head &&
                      std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
                      head.e_phentsize == sizeof(Elf64_Phdr);
  for (unsigned i = 0; is_elf && length == 0 && i < head.e_phnum && i < 64; ++i) {
    Elf64_Phdr segment{};
    const off_t at = static_cast<off_t>(head.e_phoff + i * sizeof segment);
    if (pread(file, &segment, sizeof segment, at) != sizeof segment) break;
    if (segment.p_type != PT_NOTE || segment.p_filesz > 4096) continue;
    alignas(8) unsigned char notes[1024];
    const std::size_t want = segment.p_filesz < sizeof notes ? segment.p_filesz : sizeof notes;
    const ssize_t got = pread(file, notes, want, static_cast<off_t>(segment.p_offset));
    const std::size_t size = got > 0 ? static_cast<std::size_t>(got) : 0;
    for (std::size_t note = 0; note + sizeof(Elf64_Nhdr) <= size;) {
      Elf64_Nhdr entry;
      std::memcpy(&entry, notes + note, sizeof entry);
      const std::size_t name = note + sizeof entry;
      const std::size_t body = name + (entry.n_namesz + 3U) / 4 * 4;
      const std::size_t next = body + (entry.n_descsz + 3U) / 4 * 4;
      if (next > size || next <= note) break;
      if (entry.n_type == NT_GNU_BUILD_ID && entry.n_namesz == 4 && entry.n_descsz <= sizeof id &&
          std::memcmp(notes + name, "GNU", 4) == 0) {
        length = entry.n_descsz;
        std::memcpy(id, notes + body, length);
        break;
      }
      note = next;
    }
  }
  close(file);
  return length;
#else
  (void)path;
  (void)id;
  return 0;
#endif
}

Module* add_module(std::uint64_t begin, std::uint64_t end, std::uint64_t offset, const char* path) noexcept {
  if (g_module_count == kMaxModules) return nullptr;
  unsigned char build_id[64];
  const std::uint32_t id_bytes = read_build_id(path, build_id);
  const std::size_t path_bytes = std::strlen(path) + 1;
  auto* record = static_cast<trace::ModuleRecord*>(
      reserve_side(trace::SideKind::kModule,
                   static_cast<std::uint32_t>(sizeof(trace::ModuleRecord) + id_bytes + path_bytes)));
  if (record == nullptr) return nullptr;
  Module& module = g_modules[g_module_count++];
  module = Module{begin, end, offset, g_module_count};
  record->module = module.id;
  record->build_id_bytes = id_bytes;
  record->begin = begin;
  record->end = end;
  record->file_offset = offset;
  auto* to = reinterpret_cast<char*>(record + 1);
  std::memcpy(to, build_id, id_bytes);
  std::memcpy(to + id_bytes, path, path_bytes);
  commit_side(record);
  return &module;
}

std::uint64_t read_hex(const char*& at) noexcept {
  std::uint64_t value = 0;
  for (;; ++at) {
    if (*at >= '0' && *at <= '9')
      value = value * 16 + static_cast<std::uint64_t>(*at - '0');
    else if (*at >= 'a' && *at <= 'f')
      value = value * 16 + static_cast<std::uint64_t>(*at - 'a' + 10);
    else
      return value;
  }
}

// One line of /proc/self/maps: "begin-end perms offset dev inode   path". The module, if `address` is in it.
Module* match_line(const char* line, std::uint64_t address) noexcept {
  const char* at = line;
  const std::uint64_t begin = read_hex(at);
  if (*at++ != '-') return nullptr;
  const std::uint64_t end = read_hex(at);
  if (address < begin || address >= end || std::strlen(at) < 6) return nullptr;
  at += 6;  // " r-xp "
  const std::uint64_t offset = read_hex(at);
  const char* path = std::strchr(at, '/');
  return path != nullptr ? add_module(begin, end, offset, path) : nullptr;
}

// /proc/self/maps instead of dl_iterate_phdr: that takes the loader's lock, which another thread of the host
// may hold.
Module* load_module(std::uint64_t address) noexcept {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  Module* module = nullptr;
  char chunk[1024];
  char line[kMaxPath];
  std::size_t used = 0;
  for (ssize_t got = 0; module == nullptr && (got = read(file, chunk, sizeof chunk)) > 0;) {
    for (ssize_t i = 0; i < got && module == nullptr; ++i) {
      if (chunk[i] != '\n') {
        if (used + 1 < sizeof line) line[used++] = chunk[i];
        continue;
      }
      line[used] = '\0';
      used = 0;
      module = match_line(line, address);
    }
  }
  close(file);
  return module;
}

}  // namespace

std::uint32_t add_site(std::uint64_t address) noexcept {
  const ErrnoKeeper keep;
  const SpinGuard guard(g_lock);
  std::uint64_t at = spread(address);
  Site* site = nullptr;
  for (std::uint32_t tries = 0; tries < 32 && site == nullptr; ++tries, ++at) {
    Site& candidate = g_sites[at % kSiteSlots];
    const std::uint64_t found = candidate.address.load(std::memory_order_relaxed);
    if (found == address) return candidate.id;
    if (found == 0) site = &candidate;
  }
  if (site == nullptr) return 0;

  Module* module = find_module(address - 1);
  if (module == nullptr) module = load_module(address - 1);
  auto* record = static_cast<trace::CallSiteRecord*>(
      reserve_side(trace::SideKind::kCallSite, sizeof(trace::CallSiteRecord)));
  if (record != nullptr) {
    site->id = next_site_id();
    record->site = site->id;
    record->module = module != nullptr ? module->id : 0;
    record->address = address;
    record->file_offset = module != nullptr ? address - module->begin + module->file_offset : 0;
    commit_side(record);
  }
  site->address.store(address, std::memory_order_release);
  return site->id;
}

std::uint32_t next_site_id() noexcept { return g_next_site.fetch_add(1, std::memory_order_relaxed); }

void reset_sites() noexcept {
  g_lock.unlock();
  for (Site& site : g_sites) {
    site.address.store(0, std::memory_order_relaxed);
    site.id = 0;
  }
  g_next_site.store(1, std::memory_order_relaxed);
  g_module_count = 0;
}

}  // namespace lockstep::shim
