// Alignment and wrapping.
#include "report/columns.h"

#include <gtest/gtest.h>

#include "report/printable.h"

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;

TEST(AlignColumns, PadsLeavesOutEmptyColumnsAndTrims) {
  const std::vector<Cells> rows{{"rank 0", "", "all_reduce", "x"}, {"ranks 1-7", "", "broadcast"}};
  EXPECT_EQ(align_columns(rows, 80, 2), (Lines{"rank 0     all_reduce  x", "ranks 1-7  broadcast"}));
}

TEST(AlignColumns, CutsTheFlexibleColumnFirst) {
  const std::vector<Cells> rows{{"rank 0", "a_function_with_a_long_name", "waits for rank 1"}};
  EXPECT_EQ(align_columns(rows, 43, 1), (Lines{"rank 0  a_function_wit...  waits for rank 1"}));
}

TEST(AlignColumns, CutsTheLineWhereThatIsNotEnough) {
  const std::vector<Cells> rows{{std::string(50, 'r'), std::string(50, 'f'), std::string(50, 'w')}};
  for (const std::string& line : align_columns(rows, 60, 1)) EXPECT_LE(display_width(line), 60U);
}

TEST(AlignColumns, CountsCharactersNotBytes) {
  const std::vector<Cells> rows{{"öö", "x"}, {"日", "x"}, {"ab", "x"}};
  EXPECT_EQ(align_columns(rows, 80, 0), (Lines{"öö  x", "日  x", "ab  x"}));
}

TEST(Wrap, BreaksAtSpacesAndInsideLongWords) {
  EXPECT_EQ(wrap("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("one  two", 20), (Lines{"one two"}));
  EXPECT_EQ(wrap("a abcdefghij b", 4), (Lines{"a", "abcd", "efgh", "ij b"}));
  EXPECT_EQ(wrap("öööööö", 4), (Lines{"öööö", "öö"}));
  EXPECT_EQ(wrap("日本", 1), (Lines{"日", "本"}));
  EXPECT_EQ(wrap("", 4), (Lines{""}));
}

}  // namespace
}  // namespace lockstep
