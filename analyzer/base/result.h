// Result<T>: a value or an Error; the member names of std::expected, which C++20 lacks, so it can be replaced by it.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace lockstep {

enum class ErrorCode {
  kUsage,        ///< the command line is wrong: exit 2
  kUnreadable,   ///< the input cannot be opened or is of no known format: exit 3
  kMalformed,    ///< the input breaks its own format at a named place: exit 3
  kUnsupported,  ///< the input is of a version or size that this program does not read: exit 3
};

/// What went wrong, where (path, line or offset) and what was expected; one line, no trailing newline.
struct Error {
  ErrorCode code = ErrorCode::kMalformed;
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return has_value(); }

  T& value() & { return *get(); }
  const T& value() const& { return *get(); }
  T&& value() && { return std::move(*get()); }
  T& operator*() & { return *get(); }
  const T& operator*() const& { return *get(); }
  T&& operator*() && { return std::move(*get()); }
  T* operator->() { return get(); }
  const T* operator->() const { return get(); }

  const Error& error() const {
    assert(!has_value());
    return *std::get_if<Error>(&state_);
  }

 private:
  T* get() {
    assert(has_value());
    return std::get_if<T>(&state_);
  }
  const T* get() const {
    assert(has_value());
    return std::get_if<T>(&state_);
  }
  std::variant<T, Error> state_;
};

}  // namespace lockstep
