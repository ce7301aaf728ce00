// Reading fixed-size records out of bytes that may hold anything and may change meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace lockstep {

/// A view of a file; every read is checked, and gives zeros beyond the end.
class TraceBytes {
 public:
  explicit TraceBytes(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t size() const { return bytes_.size(); }
  bool has(std::uint64_t at, std::uint64_t size) const { return at <= bytes_.size() && size <= bytes_.size() - at; }

  template <class T>
  T get(std::uint64_t at) const {
    T value{};
    if (has(at, sizeof value)) std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  /// The words that say whether a record is there: what the writer stored before them is seen by reads after this.
  template <class T>
  T acquire(std::uint64_t at) const {
    const T value = get<T>(at);
    std::atomic_thread_fence(std::memory_order_acquire);
    return value;
  }
  /// A hint that the bytes at `at` will be read soon; anywhere, for it never faults.
  void prefetch(std::uint64_t at) const {
    if (at < bytes_.size()) __builtin_prefetch(bytes_.data() + at);
  }
  /// The text at `at`, moved behind its zero byte; cut at `end` where it has none.
  std::string text(std::uint64_t& at, std::uint64_t end) const {
    if (end > bytes_.size()) end = bytes_.size();
    if (at >= end) return {};
    const std::string_view rest = bytes_.substr(at, end - at);
    const std::string_view found = rest.substr(0, rest.find('\0'));
    at += found.size() + 1;
    return std::string(found);
  }
  const char* data(std::uint64_t at) const { return bytes_.data() + at; }

 private:
  std::string_view bytes_;
};

}  // namespace lockstep
