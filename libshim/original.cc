#include "original.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "recorder.h"

// glibc 2.34 moved dlsym and its relatives from libdl to libc under a new version. The old version is still there, and weak because
// on older systems it is in libdl, which whoever loads an MPI or NCCL library has loaded too.
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
#define LOCKSTEP_LOADER_IS_THERE (&lockstep_dlsym != nullptr && &lockstep_dlopen != nullptr && &lockstep_dlerror != nullptr)
#else
#define lockstep_dlsym dlsym
#define lockstep_dlopen dlopen
#define lockstep_dlerror dlerror
#define LOCKSTEP_LOADER_IS_THERE true
#endif

namespace lockstep::shim {
namespace {

struct Search {
  const char* symbol = nullptr;
  const char* const* libraries = nullptr;
  void* found = nullptr;
};

bool name_matches(const char* path, const char* const* libraries) noexcept {
  const char* slash = std::strrchr(path, '/');
  const char* file = slash != nullptr ? slash + 1 : path;
  for (; *libraries != nullptr; ++libraries) {
    if (std::strncmp(file, *libraries, std::strlen(*libraries)) == 0) return true;
  }
  return false;
}

int look_in(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (info->dlpi_name == nullptr || !name_matches(info->dlpi_name, search->libraries)) return 0;
  // RTLD_NODELETE: what is called through this address must not be unmapped.
  void* library = lockstep_dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (library != nullptr) search->found = lockstep_dlsym(library, search->symbol);
  return search->found != nullptr ? 1 : 0;
}

void* find(void* first, const char* symbol, const char* const* libraries) noexcept {
  const ErrnoKeeper keep;
  if (!LOCKSTEP_LOADER_IS_THERE) return nullptr;
  Search search{symbol, libraries, lockstep_dlsym(first, symbol)};
  if (search.found == nullptr) dl_iterate_phdr(look_in, &search);
  lockstep_dlerror();  // the host must not find our failed look-ups in its next dlerror()
  return search.found;
}

}  // namespace

void* find_original(const char* symbol, const char* const* libraries) noexcept {
  return find(RTLD_NEXT, symbol, libraries);
}

void* find_visible(const char* symbol, const char* const* libraries) noexcept {
  return find(RTLD_DEFAULT, symbol, libraries);
}

}  // namespace lockstep::shim
