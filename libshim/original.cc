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

}  // namespace

void* find_original(const char* symbol, const char* const* libraries) noexcept {
  return find(RTLD_NEXT, symbol, libraries);
}

void* find_visible(const char* symbol, const char* const* libraries) noexcept {
  return find(RTLD_DEFAULT, symbol, libraries);
}

}  // namespace lockstep::shim
