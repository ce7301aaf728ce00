// Counts the calls of each site by member and looks for the quantity behind a difference.
#include "plan/variance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace lockstep::plan {
namespace {

using CountsByMember = std::map<std::int32_t, std::uint64_t>;

std::map<SiteIndex, CountsByMember> count_by_site(const Job& job, CommIndex comm) {
  std::map<SiteIndex, CountsByMember> counts;
  for (const std::int32_t rank : job.communicator(comm).members) {
    const ProgramIndex program = job.program_of_rank(rank);
    if (program == kNoProgram) continue;
    for (const Operation& operation : job.program(program).operations)
      if (operation.comm == comm && op_class(operation.kind) == OpClass::kCollective)
        ++counts[operation.site][rank];
  }
  return counts;
}

std::string with_rank(std::string reason, std::int32_t rank) {
  const std::size_t at = reason.find(kThisRank);
  if (at != std::string::npos) reason.replace(at, kThisRank.size(), fmt::format("rank {}", rank));
  return reason;
}

/// The axis along which equal coordinates mean equal values: the first that explains the difference.
std::optional<Variance> vary(const Expansion& expansion, QuantityIndex index,
                             const std::vector<std::int32_t>& members) {
  const Quantity& quantity = expansion.quantities[index];
  for (const Axis axis : kAxes) {
    std::map<std::int32_t, std::int64_t> values;
    bool is_function = true;
    for (const std::int32_t rank : members) {
      const std::int64_t value = quantity.by_rank[static_cast<std::size_t>(rank)];
      const auto [entry, is_new] = values.emplace(expansion.layout.coordinate(axis, rank), value);
      is_function = is_function && (is_new || entry->second == value);
    }
    const bool differs = std::ranges::any_of(
        values, [&](const auto& entry) { return entry.second != values.begin()->second; });
    if (!is_function) continue;
    if (!differs) return std::nullopt;
    Variance variance{.quantity = index, .axis = axis};
    variance.values.assign(values.begin(), values.end());
    std::set<std::string_view> given;
    for (const std::int32_t rank : members) {
      const auto reason = quantity.reasons.find(expansion.program_of[static_cast<std::size_t>(rank)]);
      if (reason != quantity.reasons.end() && given.insert(reason->second).second)
        variance.reasons.push_back(with_rank(reason->second, rank));
    }
    return variance;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Variance> find_variances(const Expansion& expansion, CommIndex comm) {
  const std::size_t members_in_job = expansion.job.communicator(comm).members.size();
  const std::vector<std::int32_t>& members = all_members(expansion, comm);
  std::vector<Variance> variances;
  for (const auto& [site, counts] : count_by_site(expansion.job, comm)) {
    const bool all_equal =
        counts.size() == members_in_job && std::ranges::all_of(counts, [&](const auto& entry) {
          return entry.second == counts.begin()->second;
        });
    const auto controls = expansion.controls.find(site);
    if (controls == expansion.controls.end()) continue;
    for (const QuantityIndex quantity : controls->second) {
      auto variance = vary(expansion, quantity, members);
      if (!variance || (all_equal && !expansion.quantities[quantity].per.empty())) continue;
      variance->comm = comm;
      variance->site = site;
      variances.push_back(*std::move(variance));
    }
  }
  return variances;
}

std::string variance_text(const Expansion& expansion, const Variance& variance) {
  constexpr std::size_t kMostListed = 8;
  const std::string_view axis = axis_name(variance.axis);
  std::vector<std::string> values;
  for (const auto& [coordinate, value] : variance.values) {
    if (values.size() == kMostListed) {
      values.push_back(fmt::format("and {} more", variance.values.size() - kMostListed));
      break;
    }
    values.push_back(fmt::format("{} {} has {}", axis, coordinate,
                                 value == Quantity::kUnset ? "none" : std::to_string(value)));
  }
  return fmt::format("{} varies by {}: {}", expansion.quantities[variance.quantity].name, axis,
                     fmt::join(values, ", "));
}

}  // namespace lockstep::plan
