// Numbers, texts and directories that the recorder takes from its environment.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "config.h"
#include "run_directory.h"
#include "text.h"

namespace lockstep::shim {
namespace {

TEST(RecorderConfig, TakesSizesAndNothingElse) {
  struct Case {
    const char* text;
    std::uint64_t expected;
  };
  for (const auto& [text, expected] : {Case{"16M", 16U << 20}, Case{"64k", 64U << 10}, Case{"1G", 1U << 30}, Case{"4096", 4096}, Case{"", 7},
                                       Case{"M", 7}, Case{"-1", 7}, Case{"16 M", 7}, Case{"16MM", 7}, Case{"99999999999999999999G", 7}}) {
    EXPECT_EQ(parse_size(text, 7), expected) << text;
  }
  EXPECT_EQ(parse_number("12", -1), 12);
  EXPECT_EQ(parse_number("12x", -1), -1);
  EXPECT_EQ(parse_number("", -1), -1);
  EXPECT_EQ(parse_number("99999999999999999999", -1), -1);
}

TEST(RecorderText, CutsWhatDoesNotFit) {
  char buffer[8];
  Text text(buffer);
  text.add("ab").add_number(-12).add_hex(255);
  EXPECT_STREQ(text.c_str(), "ab-12ff");
  EXPECT_FALSE(text.cut());
  text.add("c");
  EXPECT_STREQ(text.c_str(), "ab-12ff");
  EXPECT_TRUE(text.cut());
  char number[24];
  EXPECT_STREQ(Text(number).add_number(INT64_MIN).c_str(), "-9223372036854775808");
  char name[16];
  EXPECT_STREQ(Text(name).add_name("a/b c.d-_").c_str(), "a_b_c.d-_");
}

class RunDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "run_directory.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
    ASSERT_LT(path_.size() + 8, sizeof config_.directory);
    Text(config_.directory).add(path_.c_str()).add("/deep");
    config_.file_mode = 0600;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::string path_;
  Config config_;
  TracePlace place_;
};

TEST_F(RunDirectory, NamesFileByRunHostProcessAndStart) {
  Text(config_.run).add("job-7.r1");
  ASSERT_EQ(find_trace_place(config_, 0xabcdef, place_), nullptr);
  EXPECT_TRUE(std::filesystem::is_directory(path_ + "/deep/job-7.r1"));
  const std::string file = std::filesystem::path(place_.file).filename();
  EXPECT_TRUE(file.ends_with("." + std::to_string(getpid()) + ".abcdef.lst")) << file;
  EXPECT_STREQ(place_.run, "job-7.r1");
}

TEST_F(RunDirectory, SaysWhyThereIsNone) {
  for (std::size_t i = 0; i + 1 < sizeof config_.directory; ++i) config_.directory[i] = 'x';
  EXPECT_NE(find_trace_place(config_, 1, place_), nullptr);
}

}  // namespace
}  // namespace lockstep::shim
