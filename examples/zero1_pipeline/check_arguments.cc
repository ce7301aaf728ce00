#include "check_arguments.h"

#include <cstdint>
#include <map>

#include "config.h"
#include "first_values.h"

namespace zero1 {
namespace {

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size() && i < 8; ++i)
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  return ranks.size() > 8 ? text + ", ..." : text;
}

}  // namespace

[[gnu::noinline]] void check_arguments(const Communicator& world,
                                       const std::vector<std::pair<std::string, std::string>>& arguments,
                                       const std::string& fault) {
  const std::size_t each = arguments.size() + 1;
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<std::int64_t> all(each * ranks);
  std::int64_t* own = all.data() + each * static_cast<std::size_t>(world.rank());
  own[0] = fault.empty() ? 0 : 1;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    own[i + 1] = static_cast<std::int64_t>(seed_of(arguments[i].second, 0));
  world.all_gather(all.data(), each, DType::kI64);

  if (!fault.empty()) throw ConfigError(fault);
  std::vector<int> faulty;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (all[rank * each] != 0) faulty.push_back(static_cast<int>(rank));
  }
  if (!faulty.empty()) throw ConfigError("not started: " + ranks_text(faulty) + " cannot use its arguments");
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::map<std::int64_t, std::vector<int>> by_value;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      by_value[all[rank * each + i + 1]].push_back(static_cast<int>(rank));
    if (by_value.size() == 1) continue;
    std::string parties;
    for (const auto& [value, members] : by_value) {
      if (!parties.empty()) parties += "; ";
      parties +=
          ranks_text(members) + (value == own[i + 1] ? " as here, " + arguments[i].second : " another value");
    }
    throw ConfigError(arguments[i].first + " differs between ranks: " + parties);
  }
}

}  // namespace zero1
