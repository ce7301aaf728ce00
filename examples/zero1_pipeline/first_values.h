// First values of parameters: they depend on name and seed alone, so that every partition, and every copy of
// a tied weight, starts alike.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "layer.h"

namespace zero1 {

/// 64 bits that differ where `name` or `seed` do (FNV-1a).
inline std::uint64_t seed_of(const std::string& name, std::uint64_t seed) {
  std::uint64_t hash = 0xCBF29CE484222325U ^ (seed * 0x9E3779B97F4A7C15U);
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

template <class P>
std::vector<double> first_values(const Parameter<P>& parameter, std::uint64_t seed) {
  std::mt19937_64 random(seed_of(parameter.name, seed));
  std::vector<double> values(parameter.size());
  for (double& value : values) {
    // Sum of four uniforms: bell-shaped, of deviation 1/sqrt(3), and the same with every standard library.
    double sum = -2;
    for (int k = 0; k < 4; ++k) sum += static_cast<double>(random() >> 11) * 0x1p-53;
    value = parameter.fill + parameter.deviation * sum * 1.7320508;
  }
  return values;
}

}  // namespace zero1
