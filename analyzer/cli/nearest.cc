// "Did you mean": the word of a list that is closest to a mistyped one.
#include "cli/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "diagnose/finding.h"
#include "report/printable.h"

namespace lockstep {
namespace {

// Levenshtein distance, one row of the table at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest_word(std::string_view typed, std::span<const std::string_view> words) {
  constexpr std::size_t kLongest = 64;  // nothing we know is longer; keeps hostile arguments cheap
  if (typed.empty() || typed.size() > kLongest) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, typed.size() / 3) + 1;
  for (const std::string_view word : words) {
    const std::size_t distance = edit_distance(typed, word);
    if (distance < best_distance) best = word, best_distance = distance;
  }
  return best;
}

std::string did_you_mean(std::string_view typed, std::span<const std::string_view> words) {
  const std::string_view word = nearest_word(typed, words);
  return word.empty() ? "" : fmt::format("; did you mean '{}'?", word);
}

std::string no_such_class(std::string_view typed) {
  std::vector<std::string_view> ids;
  for (const FindingClass& known : finding_classes()) ids.push_back(known.id);
  return fmt::format("no class '{}'{}", printable(typed), did_you_mean(typed, ids));
}

}  // namespace lockstep
