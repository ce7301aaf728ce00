// A set of small non-negative ints that iterates in the order in which CPython (3.7 to 3.13) would:
// frameworks iterate over sets of stages, and the order of what they then do follows from it.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::plan {

class PythonIntSet {
 public:
  bool contains(std::int32_t key) const;
  void insert(std::int32_t key);
  void erase(std::int32_t key);  ///< nothing where it is absent
  std::vector<std::int32_t> in_order() const;

 private:
  static constexpr std::int32_t kFree = -1;
  static constexpr std::int32_t kErased = -2;
  /// Slots that are looked at for a key, in order; `visit` returns true to stop.
  template <class Visit>
  void probe(std::int32_t key, Visit visit) const;
  void grow();

  std::vector<std::int32_t> slots_ = std::vector<std::int32_t>(8, kFree);
  std::size_t used_ = 0;
  std::size_t filled_ = 0;  // slots that were ever used
};

}  // namespace lockstep::plan
