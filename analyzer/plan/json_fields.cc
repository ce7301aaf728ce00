// Typed access to JSON fields, with paths in errors.
#include "plan/json_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace lockstep::plan {
namespace {

const Fields::Json kEmptyObject = Fields::Json::object();

}  // namespace

void Fields::fail(const std::string& path, std::string_view message) {
  if (!error_) error_ = Error{ErrorCode::kMalformed, fmt::format("{}: {}", path, message)};
}

const Fields::Json* Fields::find(std::string_view key) {
  asked_.emplace_back(key);
  if (!value_.is_object()) return nullptr;
  const auto found = value_.find(key);
  return found == value_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::has(std::string_view key) { return find(key) != nullptr; }

std::int64_t Fields::integer(std::string_view key, std::int64_t otherwise, std::int64_t lowest,
                             std::int64_t highest) {
  const Json* const value = find(key);
  if (value == nullptr) return otherwise;
  // Unsigned numbers beyond 2^63 would wrap around.
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<std::uint64_t>() <= INT64_MAX);
  if (fits && value->get<std::int64_t>() >= lowest && value->get<std::int64_t>() <= highest)
    return value->get<std::int64_t>();
  fail(path_of(key), fmt::format("must be an integer between {} and {}, not {}", lowest, highest,
                                 value->dump().substr(0, 60)));
  return otherwise;
}

double Fields::number(std::string_view key, double otherwise) {
  const Json* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  fail(path_of(key), "must be a number");
  return otherwise;
}

bool Fields::boolean(std::string_view key, bool otherwise) {
  const Json* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  fail(path_of(key), "must be true or false");
  return otherwise;
}

std::string Fields::text(std::string_view key, std::string_view otherwise) {
  const Json* const value = find(key);
  if (value == nullptr) return std::string(otherwise);
  if (value->is_string()) return value->get<std::string>();
  fail(path_of(key), "must be a string");
  return std::string(otherwise);
}

std::size_t Fields::choice(std::string_view key, std::size_t otherwise,
                           std::span<const std::string_view> names) {
  const Json* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_string()) {
    const auto found = std::ranges::find(names, value->get_ref<const std::string&>());
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  fail(path_of(key),
       fmt::format("must be one of {}, not {}", fmt::join(names, ", "), value->dump().substr(0, 60)));
  return otherwise;
}

std::vector<std::int64_t> Fields::integers(std::string_view key, std::int64_t lowest, std::int64_t highest) {
  const Json* const value = find(key);
  std::vector<std::int64_t> list;
  if (value == nullptr) return list;
  if (!value->is_array()) {
    fail(path_of(key), "must be an array of integers");
    return list;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    const Json& item = (*value)[i];
    const bool fits =
        item.is_number_integer() && (!item.is_number_unsigned() || item.get<std::uint64_t>() <= INT64_MAX);
    if (!fits || item.get<std::int64_t>() < lowest || item.get<std::int64_t>() > highest) {
      fail(path_of(key, i), fmt::format("must be an integer between {} and {}", lowest, highest));
      return list;
    }
    list.push_back(item.get<std::int64_t>());
  }
  return list;
}

std::vector<std::string> Fields::texts(std::string_view key) {
  std::vector<std::string> list;
  const auto items = elements(key, SIZE_MAX);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].is_string())
      list.push_back(items[i].get<std::string>());
    else
      fail(path_of(key, i), "must be a string");
  }
  return list;
}

std::span<const Fields::Json> Fields::elements(std::string_view key, std::size_t most) {
  const Json* const value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) {
    fail(path_of(key), "must be an array");
    return {};
  }
  if (value->size() > most) {
    fail(path_of(key), fmt::format("has {} elements, more than {}", value->size(), most));
    return {};
  }
  return value->get_ref<const Json::array_t&>();
}

Fields Fields::object(std::string_view key) {
  const Json* const value = find(key);
  return {value == nullptr ? kEmptyObject : *value, path_of(key), error_};
}

std::vector<std::string> Fields::keys() const {
  std::vector<std::string> keys;
  if (value_.is_object())
    for (const auto& [key, value] : value_.items()) keys.push_back(key);
  return keys;
}

void Fields::end() {
  for (const std::string& key : keys())
    if (std::ranges::find(asked_, key) == asked_.end()) fail(path_of(key), "no such field");
}

}  // namespace lockstep::plan
