// Environment variables as the checks read them.
#pragma once

#include <cstdlib>
#include <string_view>

namespace lockstep {

/// Empty where it is not set.
inline std::string_view environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return value == nullptr ? std::string_view() : value;
}

}  // namespace lockstep
