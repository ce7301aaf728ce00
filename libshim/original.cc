#include "original.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "recorder.h"
#include "text.h"

// glibc 2.34 moved dlsym and its relatives from libdl to libc under a new version. The old version is still
// there, and weak because on older systems it is in libdl, which whoever loads an MPI or NCCL library has
// loaded too.
#if defined(__GLIBC__) && defined(__x86_64__)
#define LOCKSTEP_OLD_VERSION "GLIBC_2.2.5"
#elif defined(__GLIBC__) && defined(__aarch64__)
#define LOCKSTEP_OLD_VERSION "GLIBC_2.17"
#endif
#ifdef LOCKSTEP_OLD_VERSION
extern "C" {
[[gnu::weak]] void* lockstep_dlsym(void*, const char*) noexcept;
[[gnu::weak]] void* lockstep_dlopen(const char*, int) noexcept;
[[gnu::weak]] char* lockstep_dlerror() noexcept;
}
__asm__(".symver lockstep_dlsym,dlsym@" LOCKSTEP_OLD_VERSION);
__asm__(".symver lockstep_dlopen,dlopen@" LOCKSTEP_OLD_VERSION);
__asm__(".symver lockstep_dlerror,dlerror@" LOCKSTEP_OLD_VERSION);
#define LOCKSTEP_LOADER_IS_THERE \
  (&lockstep_dlsym != nullptr && &lockstep_dlopen != nullptr && &lockstep_dlerror != nullptr)
#else
#define lockstep_dlsym dlsym
#define lockstep_dlopen dlopen
#define lockstep_dlerror dlerror
#define LOCKSTEP_LOADER_IS_THERE true
#endif

namespace lockstep::shim {
namespace {

// Loaded libraries whose names match. Only names are taken while the list is walked: dl_iterate_phdr holds a
// lock that dlopen of another thread wants after its own.
struct Libraries {
  static constexpr std::uint32_t kMax = 8;
  const char* const* prefixes = nullptr;
  std::uint32_t used = 0;
  char paths[kMax][512] = {};
};

bool name_matches(const char* path, const char* const* prefixes) noexcept {
  const char* slash = std::strrchr(path, '/');
  const char* file = slash != nullptr ? slash + 1 : path;
  for (; *prefixes != nullptr; ++prefixes) {
    if (std::strncmp(file, *prefixes, std::strlen(*prefixes)) == 0) return true;
  }
  return false;
}

int note_library(dl_phdr_info* info, std::size_t, void* data) {
  auto* libraries = static_cast<Libraries*>(data);
  if (libraries->used == Libraries::kMax) return 1;
  if (info->dlpi_name == nullptr || !name_matches(info->dlpi_name, libraries->prefixes)) return 0;
  const Text path = Text(libraries->paths[libraries->used]).add(info->dlpi_name);
  if (!path.cut()) ++libraries->used;
  return 0;
}

void* find_loaded(const char* symbol, const char* const* prefixes) noexcept {
  Libraries libraries;
  libraries.prefixes = prefixes;
  dl_iterate_phdr(note_library, &libraries);
  for (std::uint32_t i = 0; i < libraries.used; ++i) {
    // RTLD_NODELETE: what is called through this address must not be unmapped.
    void* library = lockstep_dlopen(libraries.paths[i], RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    if (library == nullptr) continue;
    if (void* found = lockstep_dlsym(library, symbol)) return found;
  }
  return nullptr;
}

void* find(void* first, const char* symbol, const char* const* libraries) noexcept {
  const ErrnoKeeper keep;
  if (!LOCKSTEP_LOADER_IS_THERE) return nullptr;
  void* found = lockstep_dlsym(first, symbol);
  if (found == nullptr) found = find_loaded(symbol, libraries);
  lockstep_dlerror();  // the host must not find our failed look-ups in its next dlerror()
  return found;
}

// The file that has `address`, as the loader knows it.
struct Owner {
  std::uint64_t address = 0;
  char path[512] = {};
  bool found = false;
};

int note_owner(dl_phdr_info* info, std::size_t, void* data) {
  auto* owner = static_cast<Owner*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uint64_t begin = info->dlpi_addr + segment.p_vaddr;
    if (owner->address < begin || owner->address >= begin + segment.p_memsz) continue;
    owner->found = !Text(owner->path).add(info->dlpi_name != nullptr ? info->dlpi_name : "").cut();
    return 1;
  }
  return 0;
}

Owner owner_of(const void* address) noexcept {
  Owner owner;
  owner.address = reinterpret_cast<std::uint64_t>(address);
  dl_iterate_phdr(note_owner, &owner);
  return owner;
}

// Path of the `wanted`-th loaded file.
struct Numbered {
  std::uint32_t wanted = 0;
  std::uint32_t at = 0;
  char path[512] = {};
};

int note_numbered(dl_phdr_info* info, std::size_t, void* data) {
  auto* numbered = static_cast<Numbered*>(data);
  if (numbered->at++ != numbered->wanted) return 0;
  if (info->dlpi_name != nullptr) Text(numbered->path).add(info->dlpi_name);
  return 1;
}

// What a library that is loaded has itself; nothing where it is ours.
void* find_in(const char* path, const char* symbol) noexcept {
  if (path[0] == '\0') return nullptr;
  void* library = lockstep_dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  void* found = library != nullptr ? lockstep_dlsym(library, symbol) : nullptr;
  return found != nullptr && std::strcmp(owner_of(found).path, owner_of(&g_recorder).path) != 0 ? found : nullptr;
}

// In any loaded file, the youngest first.
void* find_anywhere(const char* symbol) noexcept {
  constexpr std::uint32_t kMost = 4096;
  Numbered last;
  last.wanted = kMost;
  dl_iterate_phdr(note_numbered, &last);
  for (std::uint32_t i = last.at; i > 0; --i) {
    Numbered one;
    one.wanted = i - 1;
    dl_iterate_phdr(note_numbered, &one);
    if (void* found = find_in(one.path, symbol)) return found;
  }
  return nullptr;
}

}  // namespace

void* find_beside(const void* address, const char* symbol, const char* name, bool& in_library) noexcept {
  const ErrnoKeeper keep;
  in_library = false;
  if (!LOCKSTEP_LOADER_IS_THERE) return nullptr;
  const Owner caller = owner_of(address);
  void* found = caller.found ? find_in(caller.path, symbol) : nullptr;
  // A caller that jumped leaves no address of its own.
  const char* const names[] = {name, nullptr};
  if (found == nullptr) found = find_loaded(symbol, names);
  if (found == nullptr) found = find_anywhere(symbol);
  lockstep_dlerror();
  if (found != nullptr) {
    const Owner owner = owner_of(found);
    in_library = owner.found && name_matches(owner.path, names);
  }
  return found;
}

void* find_original(const char* symbol, const char* const* libraries) noexcept {
  return find(RTLD_NEXT, symbol, libraries);
}

void* find_visible(const char* symbol, const char* const* libraries) noexcept {
  return find(RTLD_DEFAULT, symbol, libraries);
}

}  // namespace lockstep::shim
