// The pieces of schedule_query.cc: checks that all frameworks share, and the JSON of each.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/schedule/schedule_query.h"
#include "plan/schedule/timeline.h"

namespace lockstep::plan {

using ScheduleJson = nlohmann::ordered_json;

/// "--stages: ...": the value of a flag is not one that can be expanded.
Error bad_flag(std::string_view flag, std::string_view what);
std::string lower_case(std::string_view text);

template <class T>
struct Named {
  std::string_view name;
  T value;
};

/// By name, whatever its case. `extra_words`: a label may follow the name.
template <class T, std::size_t N>
Result<T> find_named(std::string_view name, const std::array<Named<T>, N>& names, bool extra_words = false) {
  const std::string wanted = lower_case(name);
  std::string known;
  for (const Named<T>& one : names) {
    const std::string candidate = lower_case(one.name);
    if (wanted == candidate || (extra_words && wanted.starts_with(candidate + " "))) return one.value;
    known += (known.empty() ? "" : ", ") + std::string(one.name);
  }
  return Error{ErrorCode::kUsage,
               fmt::format("--name: no schedule '{}'; there are {}", name.substr(0, 80), known)};
}

/// Positive, and small enough together that the expansion is.
std::optional<Error> check_sizes(const ScheduleQuery& query, std::int64_t virtual_stages,
                                 std::int64_t limit = kMaxForwardPasses);

/// After check_sizes: every number fits.
inline std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// The lines of each rank, by its number.
ScheduleJson rank_lines(const Timeline& timeline, bool show_world);

Result<ScheduleJson> deepspeed_json(const ScheduleQuery& query);
Result<ScheduleJson> megatron_json(const ScheduleQuery& query);
Result<ScheduleJson> torch_json(const ScheduleQuery& query);
Result<ScheduleJson> torch_runtime_json(const ScheduleQuery& query);
Result<ScheduleJson> zero_bubble_json(const ScheduleQuery& query);
Result<ScheduleJson> dualpipe_json(const ScheduleQuery& query);

}  // namespace lockstep::plan
