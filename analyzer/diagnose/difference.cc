// See the header.
#include "diagnose/difference.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace lockstep {
namespace {

using Tokens = std::vector<AlignToken>;

Tokens tokens_of(const Job& job, const CallSequences& sequences, std::size_t member) {
  Tokens tokens;
  tokens.reserve(sequences.operations[member].size());
  const auto& operations = job.program(sequences.members[member]).operations;
  for (const std::uint32_t i : sequences.operations[member]) {
    tokens.push_back({signature(job, operations[i]), static_cast<std::uint32_t>(operations[i].site)});
  }
  return tokens;
}

/// Hash of the first n signatures, for n = 0 .. size.
std::vector<std::uint64_t> prefix_hashes(const Tokens& tokens) {
  std::vector<std::uint64_t> hashes{0};
  for (const AlignToken& token : tokens) {
    std::uint64_t hash = (hashes.back() ^ token.signature) * 0x9e3779b97f4a7c15ULL;
    hashes.push_back(hash ^ hash >> 31);
  }
  return hashes;
}

/// Past this many ways of calling, members are no longer told apart: there is no majority to deviate from.
constexpr std::size_t kMostVariants = 64;

/// The ways in which the members call, and for each member those that its record is compatible with.
class Variants {
 public:
  Variants(const Job& job, const CallSequences& sequences) : job_(job), sequences_(sequences) {
    std::vector<std::size_t> order(sequences.members.size());
    for (std::size_t m = 0; m < order.size(); ++m) order[m] = m;
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t m) { return sequences.operations[m].size(); });
    hash_.resize(order.size());
    for (const std::size_t member : order) add(member);
  }

  std::size_t size() const { return ways_.size(); }
  const Variant& variant(std::size_t v) const { return ways_[v].variant; }
  AlignInput input(std::size_t v) const { return {ways_[v].tokens, ways_[v].variant.open_end}; }

  /// Bit v: the record of the member can be that of variant v, as far as it goes.
  std::uint64_t compatible(std::size_t member) const {
    const std::size_t length = sequences_.operations[member].size();
    const bool open = is_open(member);
    std::uint64_t mask = 0;
    for (std::size_t v = 0; v < ways_.size(); ++v) {
      const auto& hashes = ways_[v].hashes;
      const bool continues = length < hashes.size() && hashes[length] == hash_[member];
      if (continues && (open || length + 1 == hashes.size())) mask |= std::uint64_t{1} << v;
    }
    return mask;
  }

 private:
  struct Way {
    Variant variant;
    Tokens tokens;
    std::vector<std::uint64_t> hashes;
  };

  bool is_open(std::size_t member) const { return !calls_no_more(job_, job_.program(sequences_.members[member])); }

  /// Members come in falling order of their call counts.
  void add(std::size_t member) {
    Tokens tokens = tokens_of(job_, sequences_, member);
    std::vector<std::uint64_t> hashes = prefix_hashes(tokens);
    hash_[member] = hashes.back();
    const bool open = is_open(member);
    bool continued = false;
    for (Way& way : ways_) {
      if (way.hashes[tokens.size()] != hashes.back()) continue;
      if (way.hashes.size() == hashes.size()) {
        way.variant.open_end = way.variant.open_end && open;
        return;
      }
      continued = true;
    }
    // A record that another continues is a way of its own only where it is known to end.
    if ((continued && open) || ways_.size() == kMostVariants) return;
    ways_.push_back({.variant = {.longest = member, .open_end = open}, .tokens = std::move(tokens), .hashes = std::move(hashes)});
  }

  const Job& job_;
  const CallSequences& sequences_;
  std::vector<Way> ways_;
  std::vector<std::uint64_t> hash_;  // of the whole record, by member
};

/// The variant that most members are bound to; among equals the longer record.
std::size_t choose_reference(const Variants& variants, const std::vector<std::uint64_t>& compatible) {
  std::vector<std::size_t> bound(variants.size(), 0);
  for (const std::uint64_t mask : compatible) {
    if (std::has_single_bit(mask)) ++bound[static_cast<std::size_t>(std::countr_zero(mask))];
  }
  return static_cast<std::size_t>(std::ranges::max_element(bound) - bound.begin());
}

void add_sides(const CallSequences& sequences, const std::vector<std::uint64_t>& compatible, std::size_t reference,
               std::size_t other, Deviation& deviation) {
  std::size_t against = 0;  // members that do not call as the reference, whatever they do
  for (std::size_t member = 0; member < compatible.size(); ++member) {
    const bool as_reference = (compatible[member] >> reference & 1) != 0;
    const bool as_other = (compatible[member] >> other & 1) != 0;
    if (!as_reference) ++against;
    if (as_reference && !as_other) deviation.conforming.push_back(sequences.members[member]);
    if (as_other && !as_reference) deviation.deviating.push_back(sequences.members[member]);
  }
  std::ranges::sort(deviation.conforming);
  std::ranges::sort(deviation.deviating);
  deviation.has_majority = deviation.conforming.size() > against;
}

}  // namespace

bool is_closed(const Program& program) {
  return program.end.kind == EndKind::kExited && !program.tail_missing;
}

bool calls_no_more(const Job& job, const Program& program) {
  if (is_closed(program)) return true;
  const auto operations = program.placed_operations();
  return !program.tail_missing && operations.size() == program.operations.size() && !operations.empty() &&
         operations.back().kind == OpKind::kFinalize && job.library_of(operations.back().comm) == Library::kMpi;
}

std::optional<CommunicatorDifference> find_difference(const Job& job, CallSequences sequences) {
  const Variants variants(job, sequences);
  if (variants.size() < 2) return std::nullopt;
  std::vector<std::uint64_t> compatible;
  for (std::size_t member = 0; member < sequences.members.size(); ++member) {
    compatible.push_back(variants.compatible(member));
  }
  const std::size_t reference = choose_reference(variants, compatible);
  CommunicatorDifference difference{.comm = sequences.comm, .variants = {variants.variant(reference)}};
  for (std::size_t v = 0; v < variants.size(); ++v) {
    if (v == reference) continue;
    Deviation deviation{.variant = difference.variants.size(),
                        .alignment = align(variants.input(reference), variants.input(v))};
    add_sides(sequences, compatible, reference, v, deviation);
    if (deviation.alignment.edits.empty() || deviation.deviating.empty()) continue;
    const auto same = std::ranges::find_if(difference.deviations, [&](const Deviation& known) {
      return known.alignment.edits.front() == deviation.alignment.edits.front();
    });
    if (same == difference.deviations.end()) {
      difference.variants.push_back(variants.variant(v));
      difference.deviations.push_back(std::move(deviation));
      continue;
    }
    same->deviating.insert(same->deviating.end(), deviation.deviating.begin(), deviation.deviating.end());
    std::ranges::sort(same->deviating);
  }
  if (difference.deviations.empty()) return std::nullopt;
  std::ranges::stable_sort(difference.deviations, {}, [](const Deviation& deviation) {
    return deviation.alignment.edits.front().reference;
  });
  difference.sequences = std::move(sequences);
  return difference;
}

}  // namespace lockstep
