// What a derived datatype means: its type signature, reduced to the shortest unit that repeats. Runs at MPI_Type_commit.
#pragma once

#include "mpi/native.h"
#include "text.h"

namespace lockstep::shim::mpi::LOCKSTEP_BACKEND {

/// A signature as runs of basic types, repeated `times`.
struct Signature {
  static constexpr std::uint32_t kMaxRuns = 96;
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

  /// Moves repetition from the runs into `times`: {i,d,i,d} becomes {i,d} twice. Runs that grow together where two copies
  /// meet ({i,d,i} twice is i,d,2i,d,i) are found as well.
  void reduce() noexcept {
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
  // The unit begins and ends with the same basic type: inner copies share a run of a + b where the outer ends have a and b.
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

// The parts of a derived type; combiner by combiner only where a type has several inner types.
inline bool read_derived(MPI_Datatype datatype, Signature& signature, int depth) noexcept {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  if (g_native.Type_get_envelope(datatype, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return false;
  constexpr int kMax = 256;
  if (combiner == MPI_COMBINER_NAMED || types < 1 || integers > kMax || addresses > kMax || types > kMax) return false;
  int integer_values[kMax];
  MPI_Aint address_values[kMax];
  MPI_Datatype type_values[kMax];
  if (g_native.Type_get_contents(datatype, integers, addresses, types, integer_values, address_values, type_values) !=
      MPI_SUCCESS) {
    return false;
  }
  bool known = true;
  if (types > 1) {
    // Struct, the only one with several: integer_values = number of blocks, then their lengths.
    known = combiner == MPI_COMBINER_STRUCT && integers == types + 1;
    for (int i = 0; known && i < types; ++i) {
      Signature part;
      known = read_signature(type_values[i], part, depth + 1);
      if (known) signature.append(part, static_cast<std::uint64_t>(integer_values[i + 1]));
    }
  } else {
    // All others hold copies of one type; how many follows from the sizes.
    Signature part;
    int outer_bytes = 0;
    int inner_bytes = 0;
    known = g_native.Type_size(datatype, &outer_bytes) == MPI_SUCCESS &&
            g_native.Type_size(type_values[0], &inner_bytes) == MPI_SUCCESS &&
            read_signature(type_values[0], part, depth + 1);
    if (known && outer_bytes > 0) {
      known = inner_bytes > 0 && outer_bytes % inner_bytes == 0;
      if (known) {
        signature = part;
        signature.times *= static_cast<std::uint64_t>(outer_bytes / inner_bytes);
      }
    }
  }
  for (int i = 0; i < types; ++i) {
    // MPI_Type_get_contents hands out new references to derived types; those to predefined ones must not be freed.
    int a = 0;
    int b = 0;
    int c = 0;
    int inner = MPI_COMBINER_NAMED;
    if (g_native.Type_get_envelope(type_values[i], &a, &b, &c, &inner) == MPI_SUCCESS && inner != MPI_COMBINER_NAMED &&
        inner != MPI_COMBINER_F90_REAL && inner != MPI_COMBINER_F90_COMPLEX && inner != MPI_COMBINER_F90_INTEGER) {
      g_native.Type_free(&type_values[i]);
    }
  }
  if (signature.times == 1) signature.reduce();
  return known && signature.known;
}

inline bool read_signature(MPI_Datatype datatype, Signature& signature, int depth) noexcept {
  if (depth > 12) return false;
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

/// The host committed `datatype`: from now on its calls can be understood. What is too complicated stays unknown.
inline void learn_datatype(MPI_Datatype datatype) noexcept {
  const ErrnoKeeper keep;
  const std::uint64_t handle = to_word(datatype);
  for (std::uint32_t i = 0; i < g_predefined_count; ++i) {
    if (g_predefined[i].handle == handle) return;
  }
  Signature signature;
  if (!read_signature(datatype, signature, 0) || signature.used == 0) {
    g_datatypes.remove(handle);
    return;
  }
  Meaning meaning;
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
