// Aligns the calls that two ranks made on one communicator, so that the call that one of them left out or added is named,
// and not only the place where the shift becomes visible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// What alignment knows of a call: what must agree, and where it was made (0 = not known).
struct AlignToken {
  std::uint64_t signature = 0;
  std::uint32_t site = 0;
  friend bool operator==(const AlignToken&, const AlignToken&) = default;
};

enum class EditKind : std::uint8_t {
  kSubstituted,  ///< both made a call here, and they differ
  kMissing,      ///< the reference made a call that the other did not
  kExtra,        ///< the other made a call that the reference did not
};

/// `reference` and `other` are positions; for kMissing `other` is where the call would stand, for kExtra likewise.
struct Edit {
  EditKind kind = EditKind::kSubstituted;
  std::uint32_t reference = 0;
  std::uint32_t other = 0;
  friend bool operator==(const Edit&, const Edit&) = default;
};

/// A sequence whose end is open may go on beyond its record: what it lacks at its end is no edit.
struct AlignInput {
  std::span<const AlignToken> tokens{};
  bool open_end = false;
};

struct Alignment {
  std::vector<Edit> edits{};  ///< in order; empty = nothing differs but an open end
  bool complete = true;       ///< false: the sequences were too different to align beyond kWindow calls
  static constexpr std::size_t kWindow = 1500;
};

/// Least-cost alignment; calls of equal signature and other site are a weak match, since two branches of one function may
/// make the same call. Where several alignments cost the same, edits stand as late as possible: where the difference
/// becomes visible. O(equal prefix and suffix) + O(kWindow^2).
Alignment align(const AlignInput& reference, const AlignInput& other);

}  // namespace lockstep
