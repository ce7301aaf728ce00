// The environment variables of the stand-in, read once a process; README.md lists them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

namespace lockstep::standin {

/// Value of LOCKSTEP_REHEARSE_<name>; empty: not set.
inline std::string_view setting(const char* name) {
  const std::string variable = std::string("LOCKSTEP_REHEARSE_") + name;
  const char* value = std::getenv(variable.c_str());
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

/// As a number; `otherwise` where it is not set or no number of at least `least`.
inline long number_setting(const char* name, long otherwise, long least) {
  const std::string text(setting(name));
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  return *end != '\0' || value < least ? otherwise : value;
}

inline double seconds_setting(const char* name, double otherwise) {
  const std::string text(setting(name));
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end != '\0' || !(value > 0) ? otherwise : value;
}

/// After so long without any progress in a process that waits, the stand-in ends it.
inline double timeout_s() { return seconds_setting("TIMEOUT", 60); }

}  // namespace lockstep::standin
