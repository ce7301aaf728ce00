// What a derived datatype means: its type signature, reduced to the shortest unit that repeats. Runs at
// MPI_Type_commit.
#pragma once

#include "mpi/native.h"
#include "text.h"

namespace lockstep::shim::mpi::LOCKSTEP_BACKEND {

/// A signature as runs of basic types, repeated `times`.
struct Signature {
  static constexpr std::uint32_t kMaxRuns = 64;
  struct Run {
    std::uint64_t hash = 0;
    std::uint64_t count = 0;
    std::uint64_t handle = 0;  ///< of the basic type
  };
  Run runs[kMaxRuns] = {};
  std::uint32_t used = 0;
  std::uint64_t times = 1;
  bool known = true;  ///< false: too complicated

  void append(const Run& run) noexcept {
    if (run.count == 0) return;
    if (used > 0 && runs[used - 1].hash == run.hash) {
      runs[used - 1].count += run.count;
    } else if (used == kMaxRuns) {
      known = false;
    } else {
      runs[used++] = run;
    }
  }

  /// Adds `copies` copies of `part` behind what is there; `times` of this one is 1.
  void append(const Signature& part, std::uint64_t copies) noexcept {
    known = known && part.known;
    const std::uint64_t total = copies * part.times;
    if (part.used == 1) {
      append(Run{part.runs[0].hash, part.runs[0].count * total, part.runs[0].handle});
      return;
    }
    for (std::uint64_t copy = 0; copy < total && known; ++copy) {
      for (std::uint32_t i = 0; i < part.used; ++i) append(part.runs[i]);
    }
  }

  /// Moves repetition from the runs into `times`: {i,d,i,d} becomes {i,d} twice. Runs that grow together
  /// where two copies meet ({i,d,i} twice is i,d,2i,d,i) are found as well.
  void reduce() noexcept {
    if (used == 0) return;
    if (used == 1) {
      times *= runs[0].count;
      runs[0].count = 1;
      return;
    }
    for (std::uint32_t length = 1; length <= used / 2; ++length) {
      if (used % length == 0 && repeats(length)) {
        times *= used / length;
        used = length;
        return;
      }
    }
    reduce_merged();
  }

 private:
  bool repeats(std::uint32_t length) const noexcept {
    for (std::uint32_t i = length; i < used; ++i) {
      if (runs[i].hash != runs[i - length].hash || runs[i].count != runs[i - length].count) return false;
    }
    return true;
  }
  // The unit begins and ends with the same basic type: inner copies share a run of a + b where the outer ends
  // have a and b.
  void reduce_merged() noexcept {
    if (used < 3 || runs[0].hash != runs[used - 1].hash) return;
    const std::uint64_t joint = runs[0].count + runs[used - 1].count;
    for (std::uint32_t step = 2; step <= (used - 1) / 2; ++step) {
      if ((used - 1) % step != 0) continue;
      bool fits = true;
      for (std::uint32_t i = 1; fits && i + 1 < used; ++i) {
        if (i % step == 0) {
          fits = runs[i].hash == runs[0].hash && runs[i].count == joint;
        } else if (i > step) {
          fits = runs[i].hash == runs[i - step].hash && runs[i].count == runs[i - step].count;
        }
      }
      if (!fits) continue;
      times *= (used - 1) / step;
      runs[step] = runs[used - 1];
      used = step + 1;
      return;
    }
  }
};

bool read_signature(MPI_Datatype datatype, Signature& signature, int depth) noexcept;

// MPI_Type_get_contents wants room for all numbers of a type, be it an index list of thousands of blocks.
// Under g_contents_lock.
inline constexpr int kMaxNumbers = 1 << 17;
inline constexpr int kMaxTypes = 128;
inline constinit int g_integers[kMaxNumbers] = {};
inline constinit MPI_Aint g_addresses[kMaxNumbers] = {};
inline constinit SpinLock g_contents_lock;

inline bool is_predefined(MPI_Datatype datatype) noexcept {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
  return g_native.Type_get_envelope(datatype, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
         combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

// All combiners but the struct hold copies of one type; how many follows from the sizes.
inline bool read_copies(MPI_Datatype datatype, MPI_Datatype inner, Signature& signature, int depth) noexcept {
  int outer_bytes = 0;
  int inner_bytes = 0;
  if (g_native.Type_size(datatype, &outer_bytes) != MPI_SUCCESS ||
      g_native.Type_size(inner, &inner_bytes) != MPI_SUCCESS) {
    return false;
  }
  if (outer_bytes == 0) return true;  // nothing in it
  if (inner_bytes <= 0 || outer_bytes % inner_bytes != 0 || !read_signature(inner, signature, depth + 1))
    return false;
  signature.times *= static_cast<std::uint64_t>(outer_bytes / inner_bytes);
  return true;
}

// The parts of a derived type.
inline bool read_derived(MPI_Datatype datatype, Signature& signature, int depth) noexcept {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  if (g_native.Type_get_envelope(datatype, &integers, &addresses, &types, &combiner) != MPI_SUCCESS)
    return false;
  if (combiner == MPI_COMBINER_NAMED) {
    int bytes = -1;  // a predefined type that predefined.def does not know; the markers MPI_LB and MPI_UB
                     // hold nothing
    return g_native.Type_size(datatype, &bytes) == MPI_SUCCESS && bytes == 0;
  }
  if (types < 1 || integers > kMaxNumbers || addresses > kMaxNumbers || types > kMaxTypes) return false;
  MPI_Datatype inner[kMaxTypes];
  if (g_native.Type_get_contents(datatype, integers, addresses, types, g_integers, g_addresses, inner) !=
      MPI_SUCCESS) {
    return false;
  }
  bool known = true;
  if (combiner == MPI_COMBINER_STRUCT) {
    // integers: number of blocks, then their lengths; the array is used again further down.
    int lengths[kMaxTypes];
    known = integers == types + 1;
    for (int i = 0; known && i < types; ++i) lengths[i] = g_integers[i + 1];
    for (int i = 0; known && i < types; ++i) {
      Signature part;
      known = read_signature(inner[i], part, depth + 1);
      if (known && lengths[i] > 0) signature.append(part, static_cast<std::uint64_t>(lengths[i]));
    }
    signature.reduce();
  } else {
    known = types == 1 && read_copies(datatype, inner[0], signature, depth);
  }
  // MPI_Type_get_contents hands out new references to derived types; those to predefined ones must not be
  // freed.
  for (int i = 0; i < types; ++i) {
    if (!is_predefined(inner[i])) g_native.Type_free(&inner[i]);
  }
  return known && signature.known;
}

inline bool read_signature(MPI_Datatype datatype, Signature& signature, int depth) noexcept {
  if (depth > 6) return false;  // each level takes some kilobytes of the host's stack
  const std::uint64_t handle = to_word(datatype);
  for (std::uint32_t i = 0; i < g_predefined_count; ++i) {
    const Predefined& entry = g_predefined[i];
    if (!entry.is_datatype || entry.handle != handle) continue;
    signature.append(Signature::Run{trace::text_hash(entry.name, std::strlen(entry.name)), 1, handle});
    return true;
  }
  return read_derived(datatype, signature, depth);
}

inline const char* basic_name(std::uint64_t handle) noexcept {
  for (std::uint32_t i = 0; i < g_predefined_count; ++i) {
    if (g_predefined[i].handle == handle) return g_predefined[i].name;
  }
  return "?";
}

inline std::uint32_t basic_bytes(std::uint64_t handle) noexcept {
  for (std::uint32_t i = 0; i < g_predefined_count; ++i) {
    if (g_predefined[i].handle == handle) return static_cast<std::uint32_t>(g_predefined[i].bytes);
  }
  return 0;
}

/// The host committed `datatype`: from now on its calls can be understood. What is too complicated stays
/// unknown.
inline void learn_datatype(MPI_Datatype datatype) noexcept {
  const ErrnoKeeper keep;
  const std::uint64_t handle = to_word(datatype);
  for (std::uint32_t i = 0; i < g_predefined_count; ++i) {
    if (g_predefined[i].handle == handle) return;
  }
  const SpinGuard guard(g_contents_lock);
  Signature signature;
  if (!read_signature(datatype, signature, 0)) {
    g_datatypes.remove(handle);
    return;
  }
  Meaning meaning;
  if (signature.used == 0) {
    g_datatypes.put(handle, meaning);  // no units at all
    return;
  }
  meaning.units = signature.times;
  if (signature.used == 1 && signature.runs[0].count == 1) {
    const char* name = basic_name(signature.runs[0].handle);
    meaning.hash = signature.runs[0].hash;
    meaning.unit_bytes = basic_bytes(signature.runs[0].handle);
    meaning.id = intern_datatype(meaning.hash, meaning.unit_bytes, name);
  } else {
    char name[256];
    Text text(name);
    std::uint64_t hash = signature.used;
    for (std::uint32_t i = 0; i < signature.used; ++i) {
      const Signature::Run& run = signature.runs[i];
      hash = trace::mix(hash ^ run.hash, run.count);
      meaning.unit_bytes += basic_bytes(run.handle) * static_cast<std::uint32_t>(run.count);
      text.add(i == 0 ? "{" : ",");
      if (run.count != 1) text.add_number(static_cast<std::int64_t>(run.count)).add("*");
      text.add(basic_name(run.handle));
    }
    text.add("}");
    meaning.hash = hash;
    meaning.id = intern_datatype(hash, meaning.unit_bytes, name);
  }
  g_datatypes.put(handle, meaning);
}

inline constinit std::atomic<std::uint32_t> g_user_operators{0};

/// User operators have no name but the order in which the program made them.
inline void learn_redop(MPI_Op op) noexcept {
  char name[32];
  Text text(name);
  text.add("user ").add_number(g_user_operators.fetch_add(1, std::memory_order_relaxed));
  Meaning meaning;
  meaning.hash = trace::text_hash(name, text.length());
  meaning.id = intern_redop(meaning.hash, name);
  g_redops.put(to_word(op), meaning);
}

}  // namespace lockstep::shim::mpi::LOCKSTEP_BACKEND
