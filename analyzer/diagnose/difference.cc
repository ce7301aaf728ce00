// See the header.
#include "diagnose/difference.h"

#include <algorithm>
#include <map>

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

struct Grouping {
  std::vector<Variant> variants;
  std::vector<Tokens> tokens;  // of the longest member of each variant
};

/// Past this many ways of calling, members are no longer told apart: there is no majority to deviate from.
constexpr std::size_t kMostVariants = 64;

/// Members in falling order of their call counts join the largest variant that continues their record.
Grouping group_members(const Job& job, const CallSequences& sequences) {
  std::vector<std::size_t> order(sequences.members.size());
  for (std::size_t m = 0; m < order.size(); ++m) order[m] = m;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t m) { return sequences.operations[m].size(); });

  Grouping grouping;
  std::vector<std::vector<std::uint64_t>> hashes;
  // Equal closed records are one variant by (length, hash); an open one joins any that its record is a prefix of.
  std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> closed;
  for (const std::size_t member : order) {
    const ProgramIndex program = sequences.members[member];
    const Tokens tokens = tokens_of(job, sequences, member);
    const std::vector<std::uint64_t> own = prefix_hashes(tokens);
    const bool open = !is_closed(job.program(program));
    std::size_t chosen = grouping.variants.size();
    for (std::size_t v = 0; v < grouping.variants.size(); ++v) {
      const bool continues = hashes[v][tokens.size()] == own.back();  // v is at least as long
      const bool same_length = hashes[v].size() == own.size();
      const bool compatible = continues && (same_length || open);
      if (compatible && (chosen == grouping.variants.size() ||
                         grouping.variants[v].members.size() > grouping.variants[chosen].members.size())) {
        chosen = v;
      }
    }
    if (chosen == grouping.variants.size() && chosen >= kMostVariants) chosen = kMostVariants - 1;
    if (chosen == grouping.variants.size()) {
      // A longer open variant that a shorter closed one is a prefix of is still another variant: the closed one lacks calls.
      grouping.variants.push_back({.longest = member, .open_end = open});
      grouping.tokens.push_back(tokens);
      hashes.push_back(own);
    }
    grouping.variants[chosen].members.push_back(program);
  }
  return grouping;
}

}  // namespace

bool is_closed(const Program& program) {
  return program.end.kind == EndKind::kExited && !program.tail_missing;
}

std::optional<CommunicatorDifference> find_difference(const Job& job, CallSequences sequences) {
  Grouping grouping = group_members(job, sequences);
  if (grouping.variants.size() < 2) return std::nullopt;

  std::vector<std::size_t> order(grouping.variants.size());
  for (std::size_t v = 0; v < order.size(); ++v) order[v] = v;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t v) { return grouping.variants[v].members.size(); });

  CommunicatorDifference difference{.comm = sequences.comm};
  std::vector<const Tokens*> tokens;
  for (const std::size_t v : order) {
    difference.variants.push_back(std::move(grouping.variants[v]));
    std::ranges::sort(difference.variants.back().members);
    tokens.push_back(&grouping.tokens[v]);
  }
  difference.has_majority = 2 * difference.variants[0].members.size() > sequences.members.size();
  for (std::size_t v = 1; v < difference.variants.size(); ++v) {
    const Variant& reference = difference.variants[0];
    const Variant& other = difference.variants[v];
    Alignment alignment = align({*tokens[0], reference.open_end}, {*tokens[v], other.open_end});
    if (alignment.edits.empty()) continue;
    const auto same = std::ranges::find_if(difference.deviations, [&](const Deviation& deviation) {
      return deviation.alignment.edits.front() == alignment.edits.front();
    });
    if (same != difference.deviations.end()) {
      same->variants.push_back(v);
    } else {
      difference.deviations.push_back({.variants = {v}, .alignment = std::move(alignment)});
    }
  }
  if (difference.deviations.empty()) return std::nullopt;
  std::ranges::stable_sort(difference.deviations, {}, [](const Deviation& deviation) {
    return deviation.alignment.edits.front().reference;
  });
  difference.sequences = std::move(sequences);
  return difference;
}

}  // namespace lockstep
