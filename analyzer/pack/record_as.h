// A record of a trace out of bytes that may be fewer.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

namespace lockstep {

/// What is not there is zero.
template <class T>
T as(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

}  // namespace lockstep
