// Random numbers that are the same on every machine and with every standard library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep::testing {

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). std::mt19937
/// would do, but the distributions of <random> differ between libraries, and a seed in a bug report must mean
/// one job everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  /// 0 <= result < bound; the bias of the remainder does not matter for tests. `bound` must be positive.
  template <class Int>
  Int below(Int bound) {
    return static_cast<Int>(next() % static_cast<std::uint64_t>(bound));
  }
  int between(int low, int high) { return low + below(high - low + 1); }  ///< both ends included
  bool chance(int percent) { return below(100) < percent; }

  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace lockstep::testing
