// Ranks that are alike: which of a plan's ranks need be expanded and replayed, so that what is found holds for all.
//
// The theorem. J is the Job of all ranks, K the Job of some of them, whose communicators are those of J without the
// members left out. `image` sends every rank of J to a rank of K, and every rank of K to itself. Where
//   (1) a rank and its image run one program: the same calls in the same order with the same arguments, on the
//       communicators that stand in the same roles for them, with roots and partners at the same places in them;
//   (2) the members of any communicator of J have, as a set, the members of one communicator of K as their images:
//       that on which the image of each of them makes the same calls;
//   (3) two roots that calls on one communicator of J name at different places have different images;
//   (4) ranks that exchange messages do so inside groups on which `image` is one-to-one, each with the member at a
//       stated place of its own group;
// a call of J completes exactly where its image in K does, in every blocking model, and the members of a communicator
// of J differ at a position exactly where those of its image do.
//
// Proof. By (1) and (2) the members of a communicator of J make, as a set, the sequences of calls that the members of
// its image make, with roots renamed without joining two of them (3): so the positions at which some differ are the
// same. Replay is the least fixpoint of rules that wait for something which, once true, stays true. Follow its order.
// What a call of a rank waits for on its own rank (host order, queues, the other parts of its batch) is the same for
// the image: a rank has one group of each role, so queues of communicators and of pairs (4) correspond one to one. A
// collective waits for the same position of all members, and these have all members of the image's communicator as
// their images (2): all stand there in J exactly where all do in K. A message waits for its partner; partners
// correspond one to one (4), and being partners is mutual, since both are members of one group. A coupled set of
// batches is connected by messages, so by (4) it covers a connected set of K: every batch of one side is met on the
// other. So each step of either replay is a step of the other.
//
// (1) holds by construction: what makes programs is told of a rank its stage, its settings and the sizes of its groups
// (its "key"), and names roots and partners by place (RankCalls). The rest is checked here and in RankCalls for every
// rank and group; where a check fails, all ranks are expanded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/layout.h"

namespace lockstep::plan {

struct AlikeRanks {
  std::vector<std::int32_t> image{};              ///< by rank; itself where the rank is kept
  std::vector<std::int32_t> kept{};               ///< ascending
  std::set<std::string, std::less<>> one_to_one{};  ///< families on whose groups `image` joins no two members

  std::int32_t image_of(std::int32_t rank) const { return image[static_cast<std::size_t>(rank)]; }
  /// All ranks whose image is one of `ranks`, ascending. O(world)
  std::vector<std::int32_t> all_like(std::span<const std::int32_t> ranks) const;
};

/// `keys` made finer by the sizes of the rank's groups: with `keys[rank]` for its stage and settings, what decides about
/// its program.
std::vector<std::int32_t> program_keys(const Layout& layout, std::span<const std::int32_t> keys);

/// Which ranks of the layout to keep; `keys` are those of program_keys(). Along the data and tensor axes indices whose slices of the world are alike are joined;
/// where not all are alike, enough of each sort are kept that what most members of a group do stays what most do.
/// Nothing where no two ranks can be shown to be alike. O(world * families)
std::optional<AlikeRanks> find_alike_ranks(const Layout& layout, std::span<const std::int32_t> keys);

/// Whether in every group those ranks that are more than half of all have images that are more than half of the group's
/// images, whichever programs they have: so that a report on images blames whom a report on all would blame. Not part of
/// the theorem. `program_of[rank]`: equal where programs are. False where a group has too many programs to try.
bool keeps_majorities(const Layout& layout, const AlikeRanks& alike, std::span<const std::int32_t> program_of);

}  // namespace lockstep::plan
