#include "plan/schedule/python_set.h"

#include <algorithm>
#include <optional>

namespace lockstep::plan {

template <class Visit>
void PythonIntSet::probe(std::int32_t key, Visit visit) const {
  // An int is its own hash. Nine neighbours follow each slot where they fit, then the rest of the hash is
  // mixed in.
  constexpr std::size_t kNeighbours = 9;
  const std::size_t mask = slots_.size() - 1;
  auto rest = static_cast<std::size_t>(key);
  std::size_t at = rest & mask;
  while (true) {
    const std::size_t last = at + kNeighbours <= mask ? at + kNeighbours : at;
    for (std::size_t slot = at; slot <= last; ++slot) {
      if (visit(slot)) return;
    }
    rest >>= 5;
    at = (at * 5 + 1 + rest) & mask;
  }
}

bool PythonIntSet::contains(std::int32_t key) const {
  bool found = false;
  probe(key, [&](std::size_t slot) {
    found = slots_[slot] == key;
    return found || slots_[slot] == kFree;
  });
  return found;
}

void PythonIntSet::insert(std::int32_t key) {
  std::optional<std::size_t> erased;  // the last one on the way is used again
  std::optional<std::size_t> free;
  bool found = false;
  probe(key, [&](std::size_t slot) {
    found = slots_[slot] == key;
    if (slots_[slot] == kErased) erased = slot;
    if (slots_[slot] == kFree) free = slot;
    return found || free.has_value();
  });
  if (found) return;
  ++used_;
  if (erased) {
    slots_[*erased] = key;
    return;
  }
  slots_[*free] = key;
  ++filled_;
  if (filled_ * 5 >= (slots_.size() - 1) * 3) grow();
}

void PythonIntSet::erase(std::int32_t key) {
  probe(key, [&](std::size_t slot) {
    if (slots_[slot] == key) {
      slots_[slot] = kErased;
      --used_;
      return true;
    }
    return slots_[slot] == kFree;
  });
}

void PythonIntSet::grow() {
  std::size_t size = 8;
  while (size <= used_ * 4) size *= 2;
  const std::vector<std::int32_t> keys = in_order();
  slots_.assign(size, kFree);
  filled_ = used_;
  for (const std::int32_t key : keys) {
    probe(key, [&](std::size_t slot) {
      const bool free = slots_[slot] == kFree;
      if (free) slots_[slot] = key;
      return free;
    });
  }
}

std::vector<std::int32_t> PythonIntSet::in_order() const {
  std::vector<std::int32_t> keys;
  std::ranges::copy_if(slots_, std::back_inserter(keys), [](std::int32_t key) { return key >= 0; });
  return keys;
}

}  // namespace lockstep::plan
