// Keeps the program alive when somebody shortens a file that it has mapped: what is gone reads as zeros.
#pragma once

#include <cstddef>

namespace lockstep {

/// Watches one mapping for as long as it lives; the mapping must outlive it. The first one installs a handler for SIGBUS,
/// which hands faults elsewhere to the handler that was there before.
class MappingGuard {
 public:
  MappingGuard() = default;
  /// `bytes` from `begin`, which is the start of a page.
  MappingGuard(const void* begin, std::size_t bytes);
  MappingGuard(MappingGuard&& other) noexcept;
  MappingGuard& operator=(MappingGuard&& other) noexcept;
  ~MappingGuard();

  /// A read hit what was no longer there.
  bool was_hit() const;

 private:
  struct Range;
  struct Ranges;
  Range* range_ = nullptr;
};

}  // namespace lockstep
