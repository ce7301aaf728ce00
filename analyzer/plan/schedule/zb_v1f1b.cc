// zero-bubble's 1F1B on a V of two chunks (v1f1b.py): a pattern of six slots for each stage, repeated, cut to
// the micro-batches there are, and moved to the left during the warm-up.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "plan/schedule/zb_parts.h"

namespace lockstep::plan {
namespace {

constexpr std::size_t kSlots = 6;
constexpr std::string_view kLetters =
    "FfBbWw";  // forward, backward and weight on the way down the V, and (small) up
constexpr std::array<std::size_t, 256> letter_indices() {
  std::array<std::size_t, 256> indices{};
  for (std::size_t i = 0; i < kLetters.size(); ++i) indices[static_cast<unsigned char>(kLetters[i])] = i;
  return indices;
}
std::size_t index_of(char letter) {
  static constexpr auto kIndices = letter_indices();
  return kIndices[static_cast<unsigned char>(letter)];
}

/// Slot of each letter, in kLetters' order, by stage.
std::vector<std::array<std::size_t, kSlots>> slots(std::size_t p) {
  std::vector<std::array<std::size_t, kSlots>> pattern(p);
  std::size_t now = 0;
  for (std::size_t i = 0; i < p; ++i) pattern[i][0] = ++now;
  for (std::size_t i = 0; i < p; ++i) pattern[p - 1 - i][1] = ++now;
  ++now;
  if (p % 3 == 0) now += 3;
  std::size_t cycle = (3 - (p + 2) % 3) % 3;
  const auto place = [&](std::array<std::size_t, kSlots>& stage, std::size_t backward, std::size_t weight) {
    stage[backward] = now;
    stage[weight] = now + 1;
    now += 2;
    if (++cycle == 3) {
      cycle = 0;
      now += 3;
    }
  };
  for (std::size_t i = 0; i < p; ++i) place(pattern[i], 2, 4);
  for (std::size_t i = 0; i < p; ++i) place(pattern[p - 1 - i], 3, 5);
  for (auto& stage : pattern) {
    for (std::size_t& slot : stage) slot %= kSlots;
  }
  return pattern;
}

using Rows = std::vector<std::string>;

void clear_before(std::string& row, std::size_t position) {
  for (auto at = static_cast<std::ptrdiff_t>(position); at >= 0; at -= static_cast<std::ptrdiff_t>(kSlots)) {
    row[static_cast<std::size_t>(at)] = ' ';
  }
}
void clear_from(std::string& row, std::size_t position) {
  for (; position < row.size(); position += kSlots) row[position] = ' ';
}

/// Leaves `m` of each letter, the first ones in an order in which each could follow from the one before.
bool keep_micro_batches(Rows& rows, std::size_t m) {
  std::size_t index = kSlots;
  for (const char letter : std::string_view("FfBb")) {
    for (std::size_t n = 0; n < rows.size(); ++n) {
      const bool down = letter == 'F' || letter == 'B';
      std::string& row = rows[down ? n : rows.size() - 1 - n];
      for (std::size_t j = 0; j < kSlots; ++j) {
        if (index + kSlots >= row.size()) return false;
        const std::size_t at = index++;
        if (row[at] != letter) continue;
        clear_before(row, at - kSlots);
        clear_from(row, at + kSlots * m);
        if (letter == 'B' || letter == 'b') {
          const char weight = letter == 'B' ? 'W' : 'w';
          for (std::size_t k = 0; k < kSlots; ++k) {
            if (row[at + 1 + k] != weight) continue;
            clear_before(row, at + 1 + k - kSlots);
            clear_from(row, at + 1 + k + kSlots * m);
            break;
          }
        }
        break;
      }
    }
  }
  return true;
}

/// Moves turns to earlier free slots, forwards only as far as the peak of memory allows.
class WarmUp {
 public:
  WarmUp(Rows& rows, std::size_t m)
      : rows_(rows), length_(rows[0].size()), memory_(rows.size()), last_(rows.size()), count_(rows.size()) {
    for (std::size_t s = 0; s < rows.size(); ++s) {
      last_[s].assign(m + 2, Places{});
      for (auto& places : last_[s]) places.fill(-1);
      std::int64_t held = 0;
      for (const char letter : rows[s]) {
        if (letter == 'F' || letter == 'f') ++held;
        if (letter == 'W' || letter == 'w') --held;
        memory_[s].push_back(held);
        peak_ = std::max(peak_, held);
      }
    }
  }

  /// False: more of a letter than there are micro-batches.
  bool run() {
    for (std::size_t i = 0; i < length_; ++i) {
      for (std::size_t s = 0; s < rows_.size(); ++s) {
        if (rows_[s][i] != ' ' && !move(s, i)) return false;
      }
    }
    return true;
  }

 private:
  using Places = std::array<std::int64_t, kSlots>;

  std::int64_t earliest(std::size_t s, std::size_t n, char letter) const {
    const auto place = [&](std::size_t stage, char of) { return last_[stage][n][index_of(of)]; };
    const std::size_t end = rows_.size() - 1;
    std::int64_t after = n > 1 ? last_[s][n - 1][index_of(letter)] : -1;
    const auto follow = [&](std::int64_t position) { after = std::max(after, position); };
    if (letter == 'W') follow(place(s, 'B'));
    if (letter == 'w') follow(place(s, 'b'));
    if (letter == 'F' && s > 0) follow(place(s - 1, 'F'));
    if (letter == 'f') follow(s != end ? place(s + 1, 'f') : place(s, 'F'));
    // Backward and weight are one, so the next stage waits for the weight.
    if (letter == 'B') follow(s != 0 ? place(s - 1, 'W') : place(s, 'f'));
    if (letter == 'b') follow(s != end ? place(s + 1, 'w') : place(s, 'W'));
    return after + 1;
  }

  bool move(std::size_t s, std::size_t i) {
    std::string& row = rows_[s];
    const char letter = row[i];
    const std::size_t n = ++count_[s][index_of(letter)];
    if (n >= last_[s].size()) return false;
    auto position = static_cast<std::size_t>(earliest(s, n, letter));
    while (position < row.size() && row[position] != ' ' && position < i) ++position;
    const bool backward = letter == 'B' || letter == 'b';
    while (backward && position < i && (row[position] != ' ' || row[position + 1] != ' ')) ++position;
    const bool forward = letter == 'F' || letter == 'f';
    if (position >= row.size()) return false;
    if (position != i && forward) {
      std::size_t place = i;
      while (place > position && memory_[s][place - 1] < peak_) --place;
      while (place < i && row[place] != ' ') ++place;
      position = place;
    }
    last_[s][n][index_of(letter)] = static_cast<std::int64_t>(position);
    if (position == i) return true;
    row[position] = letter;
    row[i] = ' ';
    const bool weight = letter == 'W' || letter == 'w';
    for (std::size_t j = position; j < i; ++j) memory_[s][j] += forward ? 1 : weight ? -1 : 0;
    return true;
  }

  Rows& rows_;
  std::size_t length_;
  std::int64_t peak_ = 0;
  std::vector<std::vector<std::int64_t>> memory_;  // held after each slot, by stage
  std::vector<std::vector<Places>> last_;          // slot of the n-th of each letter, by stage and n
  std::vector<std::array<std::size_t, kSlots>> count_;
};

}  // namespace

Result<ZbOrder> v1f1b_order(const ZeroBubbleQuery& query) {
  const auto p = static_cast<std::size_t>(query.stages);
  const auto m = static_cast<std::size_t>(query.micro_batches);
  Rows rows;
  for (const auto& stage : slots(p)) {
    std::string one(kSlots, ' ');
    for (std::size_t i = 0; i < kSlots; ++i) one[stage[i]] = kLetters[i];
    std::string& row = rows.emplace_back();
    for (std::size_t n = 0; n < 4 * p + m + 1; ++n) row += one;
  }
  if (!keep_micro_batches(rows, m) || !WarmUp(rows, m).run())
    return zb_assertion("no V schedule of these numbers");

  ZbOrder order;
  for (std::int32_t s = 0; s < query.stages; ++s) {
    auto& out = order.emplace_back();
    std::array<std::int32_t, kSlots> count{};
    for (const char letter : rows[static_cast<std::size_t>(s)]) {
      if (letter == ' ') continue;
      const std::int32_t n = count[index_of(letter)]++;
      if (n >= query.micro_batches || letter == 'W' || letter == 'w') continue;
      // What goes down the V is chunk 0 forwards and chunk 1 backwards.
      const bool forward = letter == 'F' || letter == 'f';
      const std::int32_t chunk = letter == 'f' || letter == 'B' ? 1 : 0;
      out.push_back(zb_compute(forward ? ZbType::kF : ZbType::kBW, query.stages, s, chunk, n, true));
    }
  }
  return order;
}

}  // namespace lockstep::plan
