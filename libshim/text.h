// A line of text in a fixed buffer: what the shim has instead of std::string and printf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lockstep::shim {

/// Appends to `buffer`, which always ends in a zero byte; what does not fit is cut and noted.
class Text {
 public:
  template <std::size_t kSize>
  explicit Text(char (&buffer)[kSize]) noexcept : data_(buffer), capacity_(kSize) {
    data_[0] = '\0';
  }

  Text& add(const char* text) noexcept { return add(text, std::strlen(text)); }
  Text& add(const char* text, std::size_t length) noexcept {
    for (std::size_t i = 0; i < length; ++i) put(text[i]);
    return *this;
  }
  Text& add_number(std::int64_t value) noexcept {
    if (value < 0) put('-');
    return add_unsigned(value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value),
                        10);
  }
  Text& add_hex(std::uint64_t value) noexcept { return add_unsigned(value, 16); }
  /// For file names: anything but letters, digits, '.', '_' and '-' becomes '_'.
  Text& add_name(const char* text) noexcept {
    for (; *text != '\0'; ++text) {
      const char c = *text;
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                         c == '.' || c == '_' || c == '-';
      put(plain ? c : '_');
    }
    return *this;
  }

  const char* c_str() const noexcept { return data_; }
  std::size_t length() const noexcept { return length_; }
  bool cut() const noexcept { return cut_; }

 private:
  void put(char c) noexcept {
    if (length_ + 1 >= capacity_) {
      cut_ = true;
      return;
    }
    data_[length_++] = c;
    data_[length_] = '\0';
  }
  Text& add_unsigned(std::uint64_t value, unsigned base) noexcept {
    char digits[20];
    std::size_t used = 0;
    do {
      digits[used++] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    while (used > 0) put(digits[--used]);
    return *this;
  }

  char* data_;
  std::size_t capacity_;
  std::size_t length_ = 0;
  bool cut_ = false;
};

}  // namespace lockstep::shim
