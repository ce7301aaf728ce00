// Typed access to the fields of a JSON file that remembers where it is, so that an error can name the field.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::plan {

/// A member of an object is asked for by name, and what was never asked for is an unknown field. The first
/// error stays; after it every answer is the default.
class Fields {
 public:
  using Json = nlohmann::json;

  Fields(const Json& value, std::string path, std::optional<Error>& error)
      : value_(value), path_(std::move(path)), error_(error) {
    if (!value_.is_object()) fail(path_, "must be an object");
  }

  bool has(std::string_view key);
  std::int64_t integer(std::string_view key, std::int64_t otherwise, std::int64_t lowest,
                       std::int64_t highest);
  double number(std::string_view key, double otherwise);
  bool boolean(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string_view otherwise);
  /// One of `names`; its index.
  std::size_t choice(std::string_view key, std::size_t otherwise, std::span<const std::string_view> names);
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t lowest, std::int64_t highest);
  std::vector<std::string> texts(std::string_view key);
  /// The elements of an array; empty where it is missing. At most `most`.
  std::span<const Json> elements(std::string_view key, std::size_t most);
  /// The object of that name, or an empty one.
  Fields object(std::string_view key);

  std::string path_of(std::string_view key) const { return path_ + '.' + std::string(key); }
  std::string path_of(std::string_view key, std::size_t index) const {
    return path_of(key) + '[' + std::to_string(index) + ']';
  }
  void fail(const std::string& path, std::string_view message);
  bool failed() const { return error_.has_value(); }
  std::optional<Error>& error() { return error_; }
  /// Names of members, for objects whose keys are data.
  std::vector<std::string> keys() const;
  /// An error for members that were not asked for.
  void end();

 private:
  const Json* find(std::string_view key);

  const Json& value_;
  std::string path_;
  std::optional<Error>& error_;
  std::vector<std::string> asked_{};
};

}  // namespace lockstep::plan
