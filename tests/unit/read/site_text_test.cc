#include "read/site_text.h"

#include <gtest/gtest.h>

#include <ostream>

namespace lockstep {
namespace {

struct FrameCase {
  std::string text;
  Frame expected;
  friend void PrintTo(const FrameCase& c, std::ostream* os) { *os << c.text; }
};

class ParseFrame : public testing::TestWithParam<FrameCase> {};

TEST_P(ParseFrame, FindsFileFunctionAndLine) {
  const Frame frame = parse_frame(GetParam().text);
  EXPECT_EQ(frame.file, GetParam().expected.file);
  EXPECT_EQ(frame.function, GetParam().expected.function);
  EXPECT_EQ(frame.line, GetParam().expected.line);
}

INSTANTIATE_TEST_SUITE_P(Table, ParseFrame, testing::ValuesIn<FrameCase>({
    {"stage2.py:12", {"stage2.py", "", 12}},
    {"step@stage2.py:12", {"stage2.py", "step", 12}},
    {"zero/stage2.py:step:12", {"zero/stage2.py", "step", 12}},
    {"run.py:<module>:3", {"run.py", "<module>", 3}},
    {"step", {"", "step", 0}},
    {"ns::step", {"", "ns::step", 0}},
    {"a.cc:ns::step:7", {"a.cc", "ns::step", 7}},
    {"C:\\job\\a.py:step:7", {"C:\\job\\a.py", "step", 7}},
    {"C:\\job\\a.py:7", {"C:\\job\\a.py", "", 7}},
    {"/tmp/x:y/a.py:7", {"/tmp/x:y/a.py", "", 7}},
    {"/srv/a", {"/srv/a", "", 0}},
    {"step@a.py", {"a.py", "step", 0}},
    {"a.py:99999999999", {"a.py", "99999999999", 0}},
    {"", {"", "", 0}},
}));

TEST(ParseColonFrame, LeavesAnAtSignInTheFile) {
  const Frame frame = parse_colon_frame("pkg@1.2/a.py:step:7");
  EXPECT_EQ(frame.file, "pkg@1.2/a.py");
  EXPECT_EQ(frame.function, "step");
  EXPECT_EQ(frame.line, 7U);
}

TEST(SiteText, ReadsBackToTheSameFrames) {
  const CallSite site{.frames = {{"zero/stage2.py", "step", 12},
                                 {"my dir/a|b@c;d.py", "f(int, char)", 1},
                                 {"", "MPI_Allreduce", 0},
                                 {"C:\\a.py", "", 5},
                                 {"a.cc", "ns::f<x>", 0},
                                 {"", "x/y", 0},
                                 {"100%.py", "f%41", 2}}};
  EXPECT_EQ(parse_site(site_text(site)), site) << site_text(site);
}

TEST(EscapeWord, KeepsWordsReadable) {
  EXPECT_EQ(escape_word("train_batch[0]", ";"), "train_batch[0]");
  EXPECT_EQ(escape_word("a b;c%", ";"), "a%20b%3Bc%25");
  EXPECT_EQ(unescape_word("a%20b%3bc%25"), "a b;c%");
  EXPECT_EQ(unescape_word("50% of %zz %4"), "50% of %zz %4");
}

}  // namespace
}  // namespace lockstep
