// Needleman-Wunsch on what is left after the equal prefix and suffix.
#include "match/align.h"

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

// A gap costs less than a substitution and two gaps cost more: [A B] against [A C] is one call that differs, [A B C]
// against [A C] one that is missing, and a swapped pair is a missing and an extra call of the same signature.
constexpr int kOtherSite = 1;
constexpr int kGap = 4;
constexpr int kSubstitution = 6;

int pair_cost(const AlignToken& a, const AlignToken& b) {
  if (a.signature != b.signature) return kSubstitution;
  return a.site == b.site ? 0 : kOtherSite;
}

enum class Step : std::uint8_t { kPair, kMissing, kExtra };

/// Edits between two windows; positions relative to them.
std::vector<Edit> align_window(const AlignInput& reference, const AlignInput& other) {
  const std::size_t rows = reference.tokens.size() + 1;
  const std::size_t columns = other.tokens.size() + 1;
  std::vector<Step> steps(rows * columns, Step::kPair);
  std::vector<int> above(columns);
  std::vector<int> current(columns);
  for (std::size_t column = 0; column < columns; ++column) {
    above[column] = static_cast<int>(column) * kGap;
    steps[column] = Step::kExtra;
  }
  // best_end: where the alignment may stop because what follows on one side has no counterpart yet.
  std::size_t end_row = rows - 1;
  std::size_t end_column = columns - 1;
  int best_end = std::numeric_limits<int>::max();
  const auto consider_end = [&](std::size_t row, std::size_t column, int cost) {
    const bool reference_done = row == rows - 1;
    const bool other_done = column == columns - 1;
    const bool allowed = (reference_done && other_done) || (other_done && other.open_end) ||
                         (reference_done && reference.open_end);
    // <= : among equals the one that explains more calls.
    if (allowed && cost <= best_end) {
      best_end = cost;
      end_row = row;
      end_column = column;
    }
  };
  for (std::size_t column = 0; column < columns; ++column) consider_end(0, column, above[column]);
  for (std::size_t row = 1; row < rows; ++row) {
    current[0] = static_cast<int>(row) * kGap;
    steps[row * columns] = Step::kMissing;
    consider_end(row, 0, current[0]);
    for (std::size_t column = 1; column < columns; ++column) {
      const int pair = above[column - 1] + pair_cost(reference.tokens[row - 1], other.tokens[column - 1]);
      const int missing = above[column] + kGap;
      const int extra = current[column - 1] + kGap;
      const int best = std::min({pair, missing, extra});
      // Walking back, gaps are taken first, so that they stand late.
      steps[row * columns + column] = best == missing ? Step::kMissing : best == extra ? Step::kExtra : Step::kPair;
      current[column] = best;
      consider_end(row, column, best);
    }
    std::swap(above, current);
  }
  std::vector<Edit> edits;
  std::size_t row = end_row;
  std::size_t column = end_column;
  std::size_t pairs = 0;        // equal calls behind the place where the walk stands
  std::size_t pairs_after = 0;  // behind the first edit
  while (row > 0 || column > 0) {
    const Step step = steps[row * columns + column];
    const Edit at{.reference = static_cast<std::uint32_t>(row - (step == Step::kExtra ? 0 : 1)),
                  .other = static_cast<std::uint32_t>(column - (step == Step::kMissing ? 0 : 1))};
    switch (step) {
      case Step::kPair:
        --row;
        --column;
        if (reference.tokens[row].signature == other.tokens[column].signature) {
          ++pairs;
          continue;
        }
        edits.push_back({EditKind::kSubstituted, at.reference, at.other});
        break;
      case Step::kMissing:
        --row;
        edits.push_back({EditKind::kMissing, at.reference, at.other});
        break;
      case Step::kExtra:
        --column;
        edits.push_back({EditKind::kExtra, at.reference, at.other});
        break;
    }
    pairs_after = pairs;
  }
  std::ranges::reverse(edits);
  // A call left out shows in calls that pair again behind it. Where none does before the records end, what is known is that
  // two calls at one place differ.
  const bool open = reference.open_end || other.open_end;
  if (!edits.empty() && open && pairs_after == 0 && edits.front().reference < reference.tokens.size() &&
      edits.front().other < other.tokens.size()) {
    edits = {{EditKind::kSubstituted, edits.front().reference, edits.front().other}};
  }
  return edits;
}

}  // namespace

Alignment align(const AlignInput& reference, const AlignInput& other) {
  std::span<const AlignToken> a = reference.tokens;
  std::span<const AlignToken> b = other.tokens;
  const auto [end_a, end_b] = std::ranges::mismatch(a, b);
  const auto prefix = static_cast<std::size_t>(end_a - a.begin());
  a = a.subspan(prefix);
  b = b.subspan(prefix);
  // Behind an open end the calls to come are unknown, so equal ends prove nothing there.
  if (!reference.open_end && !other.open_end) {
    while (!a.empty() && !b.empty() && a.back() == b.back()) {
      a = a.first(a.size() - 1);
      b = b.first(b.size() - 1);
    }
  }
  Alignment alignment;
  AlignInput window_a{a, reference.open_end};
  AlignInput window_b{b, other.open_end};
  if (a.size() > Alignment::kWindow || b.size() > Alignment::kWindow) {
    // A missing tail needs no matrix.
    if (a.empty() || b.empty()) {
      const bool missing = b.empty();
      const bool excused = missing ? other.open_end : reference.open_end;
      const auto extra_calls = static_cast<std::uint32_t>(missing ? a.size() : b.size());
      const auto at = static_cast<std::uint32_t>(prefix);
      const auto listed = std::min(extra_calls, static_cast<std::uint32_t>(Alignment::kWindow));
      alignment.complete = listed == extra_calls;
      for (std::uint32_t i = 0; !excused && i < listed; ++i) {
        alignment.edits.push_back(missing ? Edit{EditKind::kMissing, at + i, at} : Edit{EditKind::kExtra, at, at + i});
      }
      return alignment;
    }
    alignment.complete = false;
    window_a = {a.first(std::min(a.size(), Alignment::kWindow)), true};
    window_b = {b.first(std::min(b.size(), Alignment::kWindow)), true};
  }
  alignment.edits = align_window(window_a, window_b);
  for (Edit& edit : alignment.edits) {
    edit.reference += static_cast<std::uint32_t>(prefix);
    edit.other += static_cast<std::uint32_t>(prefix);
  }
  return alignment;
}

}  // namespace lockstep
