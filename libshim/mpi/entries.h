// Numbers of the interposed functions: the order of functions.def, each with its MPI_ and its PMPI_ name.
#pragma once

#include <cstdint>

namespace lockstep::shim::mpi {

enum class Function : std::uint32_t {
#define MPI_CALL(name, fortran, params, args, ...) k##name,
#define MPI_CALL2(name, fortran, params, args, ...) k##name, k##name##_c,
#define MPI_OPAQUE(name, fortran) k##name,
#define MPI_QUIET(name, fortran) k##name,
#include "mpi/functions.def"
#undef MPI_CALL
#undef MPI_CALL2
#undef MPI_OPAQUE
#undef MPI_QUIET
  kCount
};
inline constexpr std::uint32_t kFunctions = static_cast<std::uint32_t>(Function::kCount);

/// Entry 2 f is MPI_<function f>, entry 2 f + 1 is PMPI_<function f>. The second matters where a Fortran
/// library or a profiling layer calls it directly; the guard of the call path keeps a call from being
/// recorded under both names.
inline constexpr std::uint32_t kEntries = 2 * kFunctions;

/// The library's own function behind an entry; null before its first call.
extern void* g_real[kEntries];

template <class Pointer>
inline Pointer real_function(Function function, bool profiling) noexcept {
  return reinterpret_cast<Pointer>(g_real[2 * static_cast<std::uint32_t>(function) + (profiling ? 1 : 0)]);
}

/// What a backend offers: one implementation's headers, compiled.
struct Backend {
  const char* name;
  /// Wrapper per entry; null = call the library directly.
  void* const* wrappers;
  /// Looks up what recording needs of the library. False if something is missing.
  bool (*activate)() noexcept;
};
extern const Backend kOpenMpi;
extern const Backend kMpich;

/// File names of MPI libraries, for find_original.
extern const char* const kLibraries[];
/// "Open MPI v4.1.4, ...", as the library says.
extern char g_library_version[];

}  // namespace lockstep::shim::mpi
