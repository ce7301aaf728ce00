// First call of each MPI function: which implementation is it, where is its own function, and who goes
// between. Also the Fortran names.
#include <atomic>
#include <cstring>

#include "log.h"
#include "mpi/entries.h"
#include "original.h"
#include "recorder.h"

extern "C" {
extern std::atomic<void*> lockstep_mpi_targets[];
[[gnu::visibility("hidden")]] void* lockstep_mpi_resolve(std::uint64_t entry) noexcept;
[[gnu::visibility("hidden")]] void* lockstep_mpi_fortran(std::uint64_t entry, const void* caller) noexcept;
}

namespace lockstep::shim::mpi {

void* g_real[kEntries] = {};
const char* const kLibraries[] = {"libmpi.",    "libmpi_", "libmpich", "libmpi-",
                                  "libmpifort", "libpmpi", nullptr};
char g_library_version[8192];

namespace {

const char* const kNames[] = {
#define MPI_CALL(name, fortran, params, args, ...) "MPI_" #name,
#define MPI_CALL2(name, fortran, params, args, ...) "MPI_" #name, "MPI_" #name "_c",
#define MPI_OPAQUE(name, fortran) "MPI_" #name,
#define MPI_QUIET(name, fortran) "MPI_" #name,
#include "mpi/functions.def"
#undef MPI_CALL
#undef MPI_CALL2
#undef MPI_OPAQUE
#undef MPI_QUIET
};

const char* const kFortranNames[] = {
#define MPI_CALL(name, fortran, params, args, ...) \
  "mpi_" #fortran "_", "mpi_" #fortran "_f08_", "mpi_" #fortran "_f08ts_",
#define MPI_CALL2(name, fortran, params, args, ...) MPI_CALL(name, fortran, params, args)
#define MPI_OPAQUE(name, fortran)
#define MPI_QUIET(name, fortran)
#include "mpi/functions.def"
#undef MPI_CALL
#undef MPI_CALL2
#undef MPI_OPAQUE
#undef MPI_QUIET
};
constexpr std::size_t kFortranEntries = sizeof kFortranNames / sizeof kFortranNames[0];
constinit std::atomic<void*> g_fortran_real[kFortranEntries] = {};

// The library has no such function: what the loader would have told the program is no longer possible to say.
int missing_function() noexcept { return 16; }  // MPI_ERR_OTHER of Open MPI, MPI_ERR_INTERN of MPICH

const Backend* choose_backend() noexcept {
  using Version = int (*)(char*, int*);
  const auto version = reinterpret_cast<Version>(find_original("MPI_Get_library_version", kLibraries));
  int length = 0;
  if (version == nullptr || version(g_library_version, &length) != 0) return nullptr;
  const Backend* backend = nullptr;
#ifdef LOCKSTEP_HAS_OPENMPI
  if (std::strstr(g_library_version, "Open MPI") != nullptr) backend = &kOpenMpi;
#endif
#ifdef LOCKSTEP_HAS_MPICH
  // These share MPICH's binary interface (mpich.org/abi).
  for (const char* name : {"MPICH", "MVAPICH", "Intel(R) MPI", "CRAY MPICH", "ParaStation"}) {
    if (backend == nullptr && std::strstr(g_library_version, name) != nullptr) backend = &kMpich;
  }
#endif
  if (backend != nullptr && !backend->activate()) backend = nullptr;
  if (backend == nullptr) {
    for (char* c = g_library_version; *c != '\0'; ++c) {
      if (*c == '\n' || *c == ',') *c = '\0';
    }
    say_recording_is_off("this MPI library is not known", g_library_version);
  }
  return backend;
}

constinit std::atomic<const Backend*> g_backend{nullptr};
constinit std::atomic<bool> g_chosen{false};

// Without a lock: it would be held while the loader's is taken. Threads that come at once find the same.
const Backend* backend() noexcept {
  if (!g_chosen.load(std::memory_order_acquire)) {
    g_backend.store(choose_backend(), std::memory_order_relaxed);
    g_chosen.store(true, std::memory_order_release);
  }
  return g_backend.load(std::memory_order_relaxed);
}

bool wanted() noexcept {
  const auto* phase = g_recorder.phase;
  return phase != nullptr && phase->load(std::memory_order_relaxed) != kPhaseOff;
}

}  // namespace
}  // namespace lockstep::shim::mpi

using namespace lockstep::shim;
using namespace lockstep::shim::mpi;

void* lockstep_mpi_resolve(std::uint64_t entry) noexcept {
  const ErrnoKeeper keep;
  const char* name = kNames[entry / 2];
  char profiling[96] = "P";
  if (entry % 2 != 0) {
    std::strncpy(profiling + 1, name, sizeof profiling - 2);
    name = profiling;
  }
  void* real = find_original(name, kLibraries);
  void* target = real;
  if (real == nullptr) {
    target = reinterpret_cast<void*>(&missing_function);
  } else if (wanted()) {
    g_real[entry] = real;
    const Backend* chosen = backend();
    if (chosen != nullptr && chosen->wrappers[entry] != nullptr) target = chosen->wrappers[entry];
  }
  lockstep_mpi_targets[entry].store(target, std::memory_order_release);
  return target;
}

void* lockstep_mpi_fortran(std::uint64_t entry, const void* caller) noexcept {
  void* real = g_fortran_real[entry].load(std::memory_order_acquire);
  if (real == nullptr) {
    real = find_original(kFortranNames[entry], kLibraries);
    if (real == nullptr) real = reinterpret_cast<void*>(&missing_function);
    g_fortran_real[entry].store(real, std::memory_order_release);
  }
  if (t_thread.frame == nullptr) t_thread.foreign_site = caller;
  return real;
}
