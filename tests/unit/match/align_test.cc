// Alignment on short words: each letter is a call, a digit after it another call site.
#include "match/align.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

std::vector<AlignToken> word(std::string_view text) {
  std::vector<AlignToken> tokens;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      tokens.back().site = static_cast<std::uint32_t>(c - '0');
    } else {
      tokens.push_back({.signature = static_cast<std::uint64_t>(c), .site = 0});
    }
  }
  return tokens;
}

/// "-2" = the reference's call 2 is missing, "+2" = the other's call 2 is extra, "~2/3" = they differ.
std::string edits(std::string_view reference, std::string_view other, bool reference_open = false,
                  bool other_open = false) {
  const auto a = word(reference);
  const auto b = word(other);
  std::string text;
  for (const Edit& edit : align({a, reference_open}, {b, other_open}).edits) {
    if (!text.empty()) text += ' ';
    switch (edit.kind) {
      case EditKind::kMissing:
        text += "-" + std::to_string(edit.reference);
        break;
      case EditKind::kExtra:
        text += "+" + std::to_string(edit.other);
        break;
      case EditKind::kSubstituted:
        text += "~" + std::to_string(edit.reference) + "/" + std::to_string(edit.other);
        break;
    }
  }
  return text;
}

TEST(Align, FindsNothingBetweenEqualCalls) {
  EXPECT_EQ(edits("", ""), "");
  EXPECT_EQ(edits("abc", "abc"), "");
}

TEST(Align, NamesTheCallThatWasLeftOutOrAdded) {
  EXPECT_EQ(edits("abc", "ac"), "-1");
  EXPECT_EQ(edits("ac", "abc"), "+1");
  EXPECT_EQ(edits("abc", "ab"), "-2");
  EXPECT_EQ(edits("abcabc", "abcbc"), "-3");
}

TEST(Align, PutsAmbiguousEditsWhereTheyBecomeVisible) {
  EXPECT_EQ(edits("aaaa", "aaa"), "-3");
  EXPECT_EQ(edits("aaab", "aab"), "-2");
}

TEST(Align, TellsASubstitutionFromAShift) {
  EXPECT_EQ(edits("abc", "axc"), "~1/1");
  EXPECT_EQ(edits("ab", "acc"), "~1/1 +2");
}

TEST(Align, ShowsASwapAsOneCallTwice) {
  EXPECT_EQ(edits("abc", "bac"), "+0 -1");
}

TEST(Align, FollowsTheCallSiteWhereArgumentsAreEqual) {
  // Rank 0 makes a call behind a condition (site 1) before the one that all make (site 2).
  EXPECT_EQ(edits("b2c", "b1b2c"), "+0");
  // One branch of a function on each rank: the same call from two lines is the same call.
  EXPECT_EQ(edits("a1b2", "a1b3"), "");
}

TEST(Align, ExcusesWhatAnOpenRecordLacksAtItsEnd) {
  EXPECT_EQ(edits("abc", "ab", false, true), "");
  EXPECT_EQ(edits("ab", "abc", true, false), "");
  EXPECT_EQ(edits("abc", "ab", true, false), "-2");
  EXPECT_EQ(edits("abcd", "acd", false, true), "-1");
}

TEST(Align, ClaimsNoShiftWithoutACallThatPairsBehindIt) {
  EXPECT_EQ(edits("ab", "ac", true, true), "~1/1");
  EXPECT_EQ(edits("abd", "ad", true, true), "-1");
}

TEST(Align, BoundsItsWorkOnSequencesThatHaveNothingInCommon) {
  const std::string a(20000, 'a');
  const std::string b(20000, 'b');
  const auto tokens_a = word(a);
  const auto tokens_b = word(b);
  const Alignment alignment = align({tokens_a, false}, {tokens_b, false});
  EXPECT_FALSE(alignment.complete);
  EXPECT_FALSE(alignment.edits.empty());
  EXPECT_LE(alignment.edits.size(), 2 * Alignment::kWindow);
}

TEST(Align, BoundsAMissingTail) {
  const auto longer = word(std::string(100000, 'a'));
  const auto shorter = word("a");
  const Alignment alignment = align({longer, false}, {shorter, false});
  EXPECT_FALSE(alignment.complete);
  EXPECT_EQ(alignment.edits.size(), Alignment::kWindow);
}

}  // namespace
}  // namespace lockstep
