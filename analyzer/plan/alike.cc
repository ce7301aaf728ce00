// Joins indices along the axes, then checks condition (2) for every rank and group.
#include "plan/alike.h"

#include <algorithm>
#include <array>

namespace lockstep::plan {
namespace {

constexpr std::int32_t kNowhere = -1;

/// The ranks as a box of stages, data and tensor indices; empty where the layout is none.
class Box {
 public:
  explicit Box(const Layout& layout) {
    std::int64_t volume = 1;
    for (std::size_t i = 0; i < kSides.size(); ++i) {
      const auto& values = layout.coordinates[static_cast<std::size_t>(kSides[i])];
      sizes_[i] = values.empty() ? 0 : *std::ranges::max_element(values) + 1;
      volume *= sizes_[i];
    }
    if (volume != layout.world) return;
    ranks_.assign(static_cast<std::size_t>(volume), kNowhere);
    for (std::int32_t rank = 0; rank < layout.world; ++rank) {
      std::int32_t& entry = ranks_[place({layout.coordinate(kSides[0], rank), layout.coordinate(kSides[1], rank),
                                          layout.coordinate(kSides[2], rank)})];
      if (entry != kNowhere) {
        ranks_.clear();
        return;
      }
      entry = rank;
    }
  }

  static constexpr std::array kSides = {Axis::kStage, Axis::kData, Axis::kTensor};
  using Index = std::array<std::int32_t, kSides.size()>;

  bool empty() const { return ranks_.empty(); }
  std::int32_t size(std::size_t side) const { return sizes_[side]; }
  std::int32_t rank_at(const Index& index) const { return ranks_[place(index)]; }

  /// The keys of all ranks with this index on one side, in order of the others.
  std::vector<std::int32_t> slice(std::size_t side, std::int32_t index, std::span<const std::int32_t> keys) const {
    Index low{};
    Index high = sizes_;
    low[side] = index;
    high[side] = index + 1;
    std::vector<std::int32_t> found;
    for (std::int32_t s = low[0]; s < high[0]; ++s)
      for (std::int32_t d = low[1]; d < high[1]; ++d)
        for (std::int32_t t = low[2]; t < high[2]; ++t)
          found.push_back(keys[static_cast<std::size_t>(rank_at({s, d, t}))]);
    return found;
  }

 private:
  std::size_t place(const Index& index) const {
    return (static_cast<std::size_t>(index[0]) * static_cast<std::size_t>(sizes_[1]) +
            static_cast<std::size_t>(index[1])) *
               static_cast<std::size_t>(sizes_[2]) +
           static_cast<std::size_t>(index[2]);
  }

  Index sizes_{};
  std::vector<std::int32_t> ranks_{};
};

/// How many to keep of sorts that have `sizes` (ascending): of one sort, one; of several, few of each, so that equal
/// sizes stay equal, larger ones larger, and a majority one.
std::vector<std::size_t> kept_of_each(const std::vector<std::size_t>& sizes) {
  if (sizes.size() == 1) return {1};
  std::size_t total = 0;
  for (const std::size_t size : sizes) total += size;
  std::vector<std::size_t> kept;
  std::size_t sum = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t before = i == 0 ? 0 : kept.back();
    std::size_t few = std::min<std::size_t>(sizes[i], 2);
    few = i > 0 && sizes[i] == sizes[i - 1] ? before : std::max(few, before + 1);
    if (sizes[i] > total - sizes[i]) few = std::max(few, sum + 1);
    kept.push_back(std::min(few, sizes[i]));
    sum += kept.back();
  }
  return kept;
}

/// By index along the side: the index that stands for it.
std::vector<std::int32_t> join_indices(const Box& box, std::size_t side, std::span<const std::int32_t> keys) {
  std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> alike;
  for (std::int32_t index = 0; index < box.size(side); ++index)
    alike[box.slice(side, index, keys)].push_back(index);
  std::vector<std::vector<std::int32_t>> sorts;
  for (auto& [slice, indices] : alike) sorts.push_back(std::move(indices));
  std::ranges::stable_sort(sorts, {}, &std::vector<std::int32_t>::size);
  std::vector<std::size_t> sizes;
  for (const auto& sort : sorts) sizes.push_back(sort.size());
  const std::vector<std::size_t> kept = kept_of_each(sizes);
  std::vector<std::int32_t> stands_for(static_cast<std::size_t>(box.size(side)));
  for (std::size_t i = 0; i < sorts.size(); ++i)
    for (std::size_t j = 0; j < sorts[i].size(); ++j)
      stands_for[static_cast<std::size_t>(sorts[i][j])] = sorts[i][j < kept[i] ? j : 0];
  return stands_for;
}

/// Condition (2) for one family, and whether no two members of a group have one image.
struct FamilyCheck {
  bool holds = true;
  bool one_to_one = true;
};

FamilyCheck check_family(const GroupFamily& family, const std::vector<std::int32_t>& image) {
  const auto image_of = [&image](std::int32_t rank) { return image[static_cast<std::size_t>(rank)]; };
  // What is left of each group in K: how many of its members are kept.
  std::vector<std::size_t> left(family.groups.size(), 0);
  for (std::size_t g = 0; g < family.groups.size(); ++g)
    left[g] = static_cast<std::size_t>(
        std::ranges::count_if(family.groups[g], [&](std::int32_t rank) { return image_of(rank) == rank; }));
  FamilyCheck check;
  std::vector<std::int32_t> images;
  for (const RankList& group : family.groups) {
    images.clear();
    for (const std::int32_t rank : group) images.push_back(image_of(rank));
    std::ranges::sort(images);
    images.erase(std::unique(images.begin(), images.end()), images.end());
    check.one_to_one = check.one_to_one && images.size() == group.size();
    if (images.empty()) continue;
    // All images in one group, and as many as are left of it: they are its members.
    const std::int32_t target = family.group_of_rank[static_cast<std::size_t>(images.front())];
    check.holds = check.holds && target >= 0 && images.size() == left[static_cast<std::size_t>(target)] &&
                  std::ranges::all_of(images, [&](std::int32_t rank) {
                    return family.group_of_rank[static_cast<std::size_t>(rank)] == target;
                  });
  }
  // A rank in no group of the family has an image in none: sizes are part of the key. Groups of a family may not
  // overlap, else a rank would have two.
  std::size_t members = 0;
  for (const RankList& group : family.groups) members += group.size();
  const auto placed = std::ranges::count_if(family.group_of_rank, [](std::int32_t group) { return group >= 0; });
  check.holds = check.holds && members == static_cast<std::size_t>(placed);
  return check;
}

/// `image` with its proof; nothing where a check fails.
std::optional<AlikeRanks> prove(const Layout& layout, std::span<const std::int32_t> keys,
                                std::vector<std::int32_t> image) {
  AlikeRanks alike;
  for (std::int32_t rank = 0; rank < layout.world; ++rank) {
    const std::int32_t other = image[static_cast<std::size_t>(rank)];
    if (keys[static_cast<std::size_t>(rank)] != keys[static_cast<std::size_t>(other)] ||
        image[static_cast<std::size_t>(other)] != other)
      return std::nullopt;
    if (other == rank) alike.kept.push_back(rank);
  }
  for (const auto& [name, family] : layout.families) {
    const FamilyCheck check = check_family(family, image);
    if (!check.holds) return std::nullopt;
    if (check.one_to_one) alike.one_to_one.insert(name);
  }
  alike.image = std::move(image);
  return alike;
}

/// How many members of a group have one program: of all, and of those that stand for them.
struct Share {
  std::int64_t all = 0;
  std::int64_t kept = 0;
  friend auto operator<=>(const Share&, const Share&) = default;
};

bool majorities_agree(const std::vector<Share>& shares) {
  constexpr std::size_t kMostPrograms = 18;  // all sets of them are tried
  if (shares.size() > kMostPrograms) return false;
  Share total;
  for (const Share& share : shares) {
    total.all += share.all;
    total.kept += share.kept;
  }
  for (std::size_t set = 0; set < std::size_t{1} << shares.size(); ++set) {
    Share sum;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if ((set >> i & 1U) == 0) continue;
      sum.all += shares[i].all;
      sum.kept += shares[i].kept;
    }
    if ((2 * sum.all > total.all) != (2 * sum.kept > total.kept)) return false;
  }
  return true;
}

}  // namespace

bool keeps_majorities(const Layout& layout, const AlikeRanks& alike, std::span<const std::int32_t> program_of) {
  std::set<std::vector<Share>> agreed;  // groups are alike, too
  std::map<std::int32_t, Share> by_program;
  for (const auto& [name, family] : layout.families) {
    for (const RankList& group : family.groups) {
      if (group.empty()) continue;
      by_program.clear();
      for (const std::int32_t rank : group) ++by_program[program_of[static_cast<std::size_t>(rank)]].all;
      const RankList& target = *layout.group(name, alike.image_of(group.front()));
      for (const std::int32_t rank : target)
        if (alike.image_of(rank) == rank) ++by_program[program_of[static_cast<std::size_t>(rank)]].kept;
      std::vector<Share> shares;
      for (const auto& [program, share] : by_program) shares.push_back(share);
      std::ranges::sort(shares);
      if (agreed.contains(shares)) continue;
      if (!majorities_agree(shares)) return false;
      agreed.insert(std::move(shares));
    }
  }
  return true;
}

std::vector<std::int32_t> AlikeRanks::all_like(std::span<const std::int32_t> ranks) const {
  std::vector<bool> wanted(image.size(), false);
  for (const std::int32_t rank : ranks)
    if (rank >= 0 && static_cast<std::size_t>(rank) < wanted.size()) wanted[static_cast<std::size_t>(rank)] = true;
  std::vector<std::int32_t> all;
  for (std::size_t rank = 0; rank < image.size(); ++rank)
    if (wanted[static_cast<std::size_t>(image[rank])]) all.push_back(static_cast<std::int32_t>(rank));
  return all;
}

std::vector<std::int32_t> program_keys(const Layout& layout, std::span<const std::int32_t> keys) {
  std::map<std::vector<std::int64_t>, std::int32_t> numbers;
  std::vector<std::int32_t> refined;
  refined.reserve(keys.size());
  std::vector<std::int64_t> key;
  for (std::int32_t rank = 0; rank < layout.world; ++rank) {
    key.assign(1, keys[static_cast<std::size_t>(rank)]);
    for (const auto& [name, family] : layout.families) {
      const std::int32_t group = family.group_of_rank[static_cast<std::size_t>(rank)];
      key.push_back(group < 0 ? 0 : std::ssize(family.groups[static_cast<std::size_t>(group)]));
    }
    refined.push_back(numbers.emplace(key, static_cast<std::int32_t>(numbers.size())).first->second);
  }
  return refined;
}

std::optional<AlikeRanks> find_alike_ranks(const Layout& layout, std::span<const std::int32_t> keys) {
  const Box box(layout);
  if (box.empty()) return std::nullopt;
  const std::vector<std::int32_t> data = join_indices(box, 1, keys);
  const std::vector<std::int32_t> tensor = join_indices(box, 2, keys);
  struct Attempt {
    bool data = false, tensor = false;
  };
  for (const Attempt attempt : {Attempt{true, true}, Attempt{true, false}, Attempt{false, true}}) {
    std::vector<std::int32_t> image(static_cast<std::size_t>(layout.world));
    for (std::int32_t rank = 0; rank < layout.world; ++rank) {
      const std::int32_t d = layout.coordinate(Axis::kData, rank), t = layout.coordinate(Axis::kTensor, rank);
      image[static_cast<std::size_t>(rank)] =
          box.rank_at({layout.coordinate(Axis::kStage, rank), attempt.data ? data[static_cast<std::size_t>(d)] : d,
                       attempt.tensor ? tensor[static_cast<std::size_t>(t)] : t});
    }
    auto proven = prove(layout, keys, std::move(image));
    if (proven && std::ssize(proven->kept) < layout.world) return proven;
  }
  return std::nullopt;
}

}  // namespace lockstep::plan
