// Making a report fit: what is dropped, and how that is said.
#include "report/sections.h"

#include <gtest/gtest.h>

#include <array>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kListsThenRows = {"also", ""};

Sections filled() {
  Sections sections(60, 24, false);
  sections.add_rows({{"rank 0  a", 1}, {"ranks 1-9  b", 9}, {"rank 10  c", 1}}, 1, 5);
  sections.add_entries("also", {"one", "two", "three"}, 0, 1);
  return sections;
}

TEST(Sections, ShowEverythingWhereThereIsRoom) {
  EXPECT_EQ(filled().text(),
            "  rank 0  a\n  ranks 1-9  b\n  rank 10  c\n  and 5 more ranks\nalso    one\n        two\n        three\n");
}

TEST(Sections, DropInTheGivenOrderAndCountTheRest) {
  Sections sections = filled();
  sections.fit(6, kListsThenRows);
  EXPECT_EQ(sections.text(),
            "  rank 0  a\n  ranks 1-9  b\n  rank 10  c\n  and 5 more ranks\nalso    one\n        and 2 more\n");
  sections.fit(3, kListsThenRows);
  EXPECT_EQ(sections.text(), "  rank 0  a\n  and 15 more ranks\nalso    3 more\n");
}

TEST(Sections, KeepTheMinimumEvenIfItDoesNotFit) {
  Sections sections = filled();
  sections.fit(0, kListsThenRows);
  EXPECT_EQ(sections.text(), "  rank 0  a\n  and 15 more ranks\nalso    3 more\n");
}

TEST(Sections, LeaveASingleEntryOutWithoutAWord) {
  Sections sections(60, 24, false);
  sections.add_entries("also", {"one"}, 0, 1);
  sections.fit(0, kListsThenRows);
  EXPECT_EQ(sections.text(), "");
}

TEST(Sections, EndACutParagraphInDots) {
  constexpr std::array<std::string_view, 1> kCause = {"cause"};
  Sections sections(30, 24, false);
  sections.add_paragraph("cause", "one two three four five six seven eight nine ten", 1);
  sections.fit(1, kCause);
  EXPECT_EQ(sections.text(), "cause   one two three four ...\n");
}

TEST(Sections, KeepALongListCheap) {
  Sections sections(60, 24, false);
  sections.add_entries("also", std::vector<std::string>(1'000'000, "finding"), 1, 1);
  sections.fit(2, kListsThenRows);
  EXPECT_EQ(sections.text(), "also    finding\n        and 999999 more\n");
}

}  // namespace
}  // namespace lockstep
