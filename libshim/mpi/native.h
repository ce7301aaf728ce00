// One implementation's handles and the functions of it that recording itself calls. Included by a backend,
// after its mpi.h; everything of a backend stands in a namespace of its own, for the types differ.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "comm_registry.h"
#include "mpi/entries.h"
#include "name_registry.h"
#include "original.h"
#include "recorder.h"
#include "trace_writer.h"

namespace lockstep::shim::mpi::LOCKSTEP_BACKEND {

/// Handles are pointers in Open MPI and integers in MPICH.
template <class Handle>
std::uint64_t to_word(Handle handle) noexcept {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<std::uint64_t>(handle);
  } else {
    return static_cast<std::uint32_t>(handle);
  }
}

// Called by the names that tools use, so that no wrapper of ours or of another tool sees it.
#define LOCKSTEP_NATIVE_FUNCTIONS(X)                                                                        \
  X(Comm_rank)                                                                                              \
  X(Comm_size) X(Comm_group) X(Comm_remote_group) X(Comm_test_inter) X(Group_size) X(Group_translate_ranks) \
      X(Group_free) X(Type_size) X(Type_get_envelope) X(Type_get_contents) X(Type_free) X(Initialized)

struct Native {
#define X(name) decltype(&::PMPI_##name) name;
  LOCKSTEP_NATIVE_FUNCTIONS(X)
#undef X
};
inline constinit Native g_native = {};

/// Values that are variables of the library in Open MPI.
struct Constants {
  MPI_Comm world;
  MPI_Comm self;
  MPI_Comm null_comm;
  MPI_Request null_request;
  MPI_Group null_group;
  MPI_Message no_process_message;
};
inline constinit Constants g_constants = {};

#if LOCKSTEP_HANDLES_ARE_VARIABLES
#define LOCKSTEP_CONSTANT(Type, name, variable) (reinterpret_cast<Type>(find_visible(#variable, kLibraries)))
#else
#define LOCKSTEP_CONSTANT(Type, name, variable) (name)
#endif

/// A predefined datatype or operator as this implementation has it.
struct Predefined {
  std::uint64_t handle;
  const char* name;
  bool is_datatype;
  int bytes;
};
inline constexpr std::uint32_t kMaxPredefined = 96;
inline constinit Predefined g_predefined[kMaxPredefined] = {};
inline constinit std::uint32_t g_predefined_count = 0;

inline bool find_natives() noexcept {
#define X(name)                                                                                        \
  g_native.name = reinterpret_cast<decltype(g_native.name)>(find_original("PMPI_" #name, kLibraries)); \
  if (g_native.name == nullptr) return false;
  LOCKSTEP_NATIVE_FUNCTIONS(X)
#undef X
  g_constants.world = LOCKSTEP_CONSTANT(MPI_Comm, MPI_COMM_WORLD, ompi_mpi_comm_world);
  g_constants.self = LOCKSTEP_CONSTANT(MPI_Comm, MPI_COMM_SELF, ompi_mpi_comm_self);
  g_constants.null_comm = LOCKSTEP_CONSTANT(MPI_Comm, MPI_COMM_NULL, ompi_mpi_comm_null);
  g_constants.null_request = LOCKSTEP_CONSTANT(MPI_Request, MPI_REQUEST_NULL, ompi_request_null);
  g_constants.null_group = LOCKSTEP_CONSTANT(MPI_Group, MPI_GROUP_NULL, ompi_mpi_group_null);
  g_constants.no_process_message = LOCKSTEP_CONSTANT(MPI_Message, MPI_MESSAGE_NO_PROC, ompi_message_no_proc);
  return to_word(g_constants.world) != 0 && to_word(g_constants.null_request) != 0;
}

inline void add_predefined(std::uint64_t handle, const char* name, bool is_datatype) noexcept {
  if (handle == 0 || g_predefined_count == kMaxPredefined) return;
  g_predefined[g_predefined_count++] = Predefined{handle, name, is_datatype, 0};
}

/// After MPI_Init: sizes are known then. Types that this build of the library lacks have none and are left
/// out.
inline void find_predefined() noexcept {
  g_predefined_count = 0;
#define DATATYPE(name, variable) \
  add_predefined(to_word(LOCKSTEP_CONSTANT(MPI_Datatype, name, variable)), #name, true);
#define REDOP(name, variable) \
  add_predefined(to_word(LOCKSTEP_CONSTANT(MPI_Op, name, variable)), #name, false);
#include "mpi/predefined.def"
#undef DATATYPE
#undef REDOP
#if LOCKSTEP_HANDLES_ARE_VARIABLES
  for (std::uint32_t i = 0; i < g_predefined_count; ++i) {
    Predefined& entry = g_predefined[i];
    if (entry.is_datatype) g_native.Type_size(reinterpret_cast<MPI_Datatype>(entry.handle), &entry.bytes);
  }
#else
  // MPICH keeps the size of a predefined datatype in its handle; asking for one that the build lacks would be
  // an error.
  for (std::uint32_t i = 0; i < g_predefined_count; ++i) {
    g_predefined[i].bytes = static_cast<int>(g_predefined[i].handle >> 8 & 0xFF);
  }
#endif
}

/// Writes and registers all of them in the current trace.
inline void register_predefined() noexcept {
  for (std::uint32_t i = 0; i < g_predefined_count; ++i) {
    const Predefined& entry = g_predefined[i];
    Meaning meaning;
    meaning.hash = trace::text_hash(entry.name, std::strlen(entry.name));
    meaning.units = 1;
    meaning.unit_bytes = static_cast<std::uint32_t>(entry.bytes);
    if (entry.is_datatype) {
      meaning.id = intern_datatype(meaning.hash, meaning.unit_bytes, entry.name);
      g_datatypes.put(entry.handle, meaning);
    } else {
      meaning.id = intern_redop(meaning.hash, entry.name);
      g_redops.put(entry.handle, meaning);
    }
  }
}

}  // namespace lockstep::shim::mpi::LOCKSTEP_BACKEND
