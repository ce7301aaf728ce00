// Megatron's RankGenerator (core/parallel_state.py): ranks as mixed-radix numbers over ordered axes.
#include "plan/megatron_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lockstep::plan {
namespace {

// In the order in which the framework looks for axes that `order` lacks.
constexpr std::array kAxes = {"tp", "pp", "dp", "ep", "cp", "gtp_remat"};

struct Axes {
  std::vector<std::int64_t> shape{};
  std::vector<std::int64_t> strides{};

  std::int64_t size() const {
    std::int64_t product = 1;
    for (const std::int64_t each : shape) product *= each;
    return product;
  }

  /// The sum of digit times stride, for the digits of `index`; an axis named twice makes `index` too large
  /// for them.
  Result<std::int64_t> offset(std::int64_t index) const {
    std::int64_t sum = 0;
    std::int64_t rest = index;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      sum += rest % shape[i] * strides[i];
      rest /= shape[i];
    }
    if (rest == 0) return sum;
    std::vector<std::int64_t> digits;
    rest = index;
    for (const std::int64_t each : shape) {
      digits.push_back(rest % each);
      rest /= each;
    }
    return rejected("AssertionError", fmt::format("idx {} with shape {} mismatch the return idx {}", index,
                                                  python_text(shape), python_text(digits)));
  }
};

}  // namespace

std::vector<std::string> split_order(std::string_view order) {
  std::vector<std::string> parts{""};
  for (const char c : order) {
    if (c == '-')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string with_gtp_remat(std::string_view order, std::string_view after) {
  std::vector<std::string> axes = split_order(order);
  if (std::ranges::find(axes, "gtp_remat") != axes.end()) return std::string(order);
  auto anchor = std::ranges::find(axes, after);
  if (anchor == axes.end()) anchor = std::ranges::find(axes, "tp");
  axes.insert(anchor == axes.end() ? axes.begin() : anchor + 1, "gtp_remat");
  return fmt::format("{}", fmt::join(axes, "-"));
}

Result<RankGenerator> RankGenerator::make(const AxisSizes& sizes, std::string_view order,
                                          std::int64_t rank_offset) {
  std::string named(order);
  std::ranges::transform(named, named.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  RankGenerator generator;
  generator.rank_offset_ = rank_offset;
  for (const char* const axis : kAxes) {
    const std::int64_t size = sizes.find(axis)->second;
    generator.world_ *= size;
    if (named.find(axis) != std::string::npos) continue;  // as text: "tp" is found in "gtp_remat"
    if (size != 1)
      return rejected("RuntimeError",
                      fmt::format("The size of ({}) is ({}), but you haven'tspecified the order ({}).", axis,
                                  size, order));
    named += fmt::format("-{}", axis);
  }
  generator.axes_ = split_order(named);
  for (const std::string& axis : generator.axes_) {
    const auto size = sizes.find(axis);
    if (size == sizes.end()) return rejected("KeyError", fmt::format("'{}'", axis));
    generator.sizes_.push_back(size->second);
  }
  return generator;
}

Result<RankLists> RankGenerator::ranks(std::string_view token) const {
  std::vector<bool> along(axes_.size(), false);
  for (const std::string& axis : split_order(token)) {
    const auto found = std::ranges::find(axes_, axis);
    if (found == axes_.end()) return rejected("ValueError", fmt::format("'{}' is not in list", axis));
    along[static_cast<std::size_t>(found - axes_.begin())] = true;
  }
  Axes inside;
  Axes outside;
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    Axes& axes = along[i] ? inside : outside;
    axes.shape.push_back(sizes_[i]);
    axes.strides.push_back(stride);
    stride *= sizes_[i];
    if (stride > kMaxWorld * kMaxWorld)
      return Error{ErrorCode::kMalformed, "the sizes of the axes are too large"};
  }
  const std::int64_t group_size = inside.size();
  RankLists groups;
  for (std::int64_t group = 0; group < world_ / group_size; ++group) {
    const auto first = outside.offset(group);
    if (!first) return first.error();
    RankList& ranks = groups.emplace_back();
    for (std::int64_t member = 0; member < group_size; ++member) {
      const auto offset = inside.offset(member);
      if (!offset) return offset.error();
      ranks.push_back(static_cast<std::int32_t>(*first + *offset + rank_offset_));
    }
  }
  return groups;
}

}  // namespace lockstep::plan
