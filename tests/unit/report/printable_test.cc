// What may reach a terminal, and how wide it is there.
#include "report/printable.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

struct PrintableCase {
  std::string name;
  std::string text;
  std::string expected;
  friend void PrintTo(const PrintableCase& c, std::ostream* os) { *os << c.name; }
};

class Printable : public testing::TestWithParam<PrintableCase> {};

TEST_P(Printable, EscapesWhatATerminalWouldObey) { EXPECT_EQ(printable(GetParam().text), GetParam().expected); }

using namespace std::string_literals;
INSTANTIATE_TEST_SUITE_P(Table, Printable, testing::ValuesIn<PrintableCase>({
    {"Plain", "grad_norm stage2.py:1505", "grad_norm stage2.py:1505"},
    {"Umlaut", "Größe", "Größe"},
    {"Wide", "日本", "日本"},
    {"Backslash", "C:\\x", "C:\\x"},
    {"Colour", "\x1b[31mred", "\\x1b[31mred"},
    {"Newline", "a\nb\r\tc", "a\\nb\\r\\tc"},
    {"Nul", "a\0b"s, "a\\x00b"},
    {"Delete", "a\x7f", "a\\x7f"},
    {"C1", "a\xc2\x9b" "31m", "a\\u009b31m"},
    {"RightToLeftOverride", "a\xe2\x80\xae" "b", "a\\u202eb"},
    {"Isolate", "\xe2\x81\xa6", "\\u2066"},
    {"ZeroWidthSpace", "\xe2\x80\x8b", "\\u200b"},
    {"TagCharacter", "\xf3\xa0\x81\x81", "\\ue0041"},
    {"LoneContinuation", "a\x80", "a\\x80"},
    {"CutSequence", "a\xe2\x82", "a\\xe2\\x82"},
    {"Overlong", "\xc0\xaf", "\\xc0\\xaf"},
    {"Surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80"},
    {"PastTheEnd", "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
}), [](const auto& test) { return test.param.name; });

TEST(CutToWidth, CutsBetweenCharactersAndSaysSo) {
  EXPECT_EQ(cut_to_width("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to_width("abcdefg", 6), "abc...");
  EXPECT_EQ(cut_to_width("ööööööö", 6), "ööö...");
  EXPECT_EQ(cut_to_width("日本日本", 7), "日本...");
  EXPECT_EQ(cut_to_width("abcdef", 2), "..");
}

}  // namespace
}  // namespace lockstep
