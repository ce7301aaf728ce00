#include "read/load.h"

#include <algorithm>

#include "read/foreign_file.h"
#include "read/json_outline.h"
#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

const std::string kRank0 = R"({"rank": 0, "seq": 1, "op": "barrier", "group": "WORLD", "ranks": [0, 1], "completed": true})" "\n";
const std::string kRank1 = R"({"rank": 1, "seq": 1, "op": "barrier", "group": "WORLD", "ranks": [0, 1], "completed": true})" "\n";

Result<Job> load(std::vector<std::string> paths) { return load_job(paths); }

TEST(LoadJob, RecognisesFilesByContent) {
  const TempDir dir;
  // Names say the opposite of what is inside.
  const auto job = load({dir.write("a.json", kRank0), dir.write("b.jsonl", R"({"ranks": {"1": ["barrier"]}})")});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->programs().size(), 2U);
  EXPECT_EQ(job->communicators().size(), 1U) << "both mean the world";
}

TEST(LoadJob, DoesNotDependOnTheOrderOfThePaths) {
  const TempDir dir;
  std::vector<std::string> paths{dir.write("r0", kRank0), dir.write("r1", kRank1), dir.write("x", R"({"ranks": {"2": ["barrier g"]}})")};
  do {
    const auto job = load_job(paths);
    ASSERT_TRUE(job);
    EXPECT_EQ(job->communicators()[0].name, "WORLD");
    EXPECT_EQ(job->communicators()[1].name, "g");
    EXPECT_EQ(job->source(job->programs()[2].source), dir.path() + "/x");
  } while (std::ranges::next_permutation(paths).found);
}

TEST(LoadJob, ReadsTheFilesOfADirectory) {
  const TempDir dir;
  dir.write("r0", kRank0);
  dir.write("r1", kRank1);
  dir.write("README.md", "nothing\n");
  std::filesystem::create_directory(dir.path() + "/deeper");
  const auto job = load({dir.path()});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->programs().size(), 2U);
  EXPECT_TRUE(job->quality().complete) << "a directory may hold anything";
  EXPECT_TRUE(has_warning(*job, "README.md: text of no known form: not used")) << all_warnings(*job);
}

TEST(LoadJobDamage, UnusableFilesBesideGoodOnes) {
  const TempDir dir;
  using namespace std::string_view_literals;
  struct {
    std::string name;
    std::string_view content;
    std::string_view seems;
  } const cases[] = {{"EmptyFile", "", "empty"},
                     {"NulBytes", "\0\0\0\0\0\0\0\0"sv, "nothing but NUL bytes"},
                     {"Elf", "\x7f" "ELF\2\1\1"sv, "an ELF program"},
                     {"Gzip", "\x1f\x8b\x08\0"sv, "its gzip data end too early"},
                     {"Zip", "PK\x03\x04\x14"sv, "a zip archive"},
                     {"Png", "\x89PNG\r\n"sv, "a PNG picture"},
                     {"Utf16", "\xff\xfe{\0"sv, "UTF-16 text"},
                     {"Pickle", "\x80\x04\x95"sv, "a Python pickle"},
                     {"Binary", "\x01\x02\x03\x04"sv, "binary data of no known form"},
                     {"Text", "hello\n", "text of no known form"},
                     {"OtherJson", R"({"a": [1, 2]})", "text of no known form"}};
  for (const auto& [name, content, seems] : cases) {
    const auto job = load({dir.write("r0", kRank0), dir.write(name, content)});
    ASSERT_TRUE(job) << name;
    EXPECT_EQ(job->programs().size(), 1U);
    EXPECT_FALSE(job->quality().complete);
    EXPECT_TRUE(has_warning(*job, dir.path() + "/" + name + ": " + std::string(seems))) << all_warnings(*job);
  }
}

TEST(LoadJob, TakesTheRankThatIsToldForAFile) {
  const TempDir dir;
  const std::string stack = "  all_reduce (torch/distributed/distributed_c10d.py:2501)\n";
  const std::vector<std::string> files{dir.write("stack_a.txt", stack) + "=4", dir.write("stack_b.txt", "  barrier (torch/distributed/distributed_c10d.py:3685)\n") + "=2"};
  const auto evidence = load_evidence(files);
  ASSERT_TRUE(evidence);
  ASSERT_EQ(evidence->reported.events.size(), 2U);
  EXPECT_EQ(evidence->reported.events[0].rank, 4);
  EXPECT_EQ(evidence->reported.events[1].rank, 2);
}

TEST(LoadJob, AFileWhoseNameEndsInANumberIsItself) {
  const TempDir dir;
  EXPECT_TRUE(load({dir.write("job=3", kRank0)}));
  EXPECT_FALSE(load({dir.path() + "/absent=3"}));
}

TEST(LoadJobDamage, NothingReadable) {
  const TempDir dir;
  const auto job = load({dir.write("a", ""), dir.path() + "/absent", dir.write("b", "PK\x03\x04")});
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kUnreadable);
  for (const char* part : {"/a: empty", "/absent: No such file or directory", "/b: a zip archive"}) {
    EXPECT_NE(job.error().message.find(dir.path() + part), std::string::npos) << job.error().message;
  }
  EXPECT_EQ(job.error().message.find('\n'), std::string::npos);
}

TEST(LoadJobDamage, EmptyDirectory) {
  const TempDir dir;
  const auto job = load({dir.path()});
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().message, dir.path() + ": no files in it");
}

TEST(LoadJob, NeedsAPath) {
  const auto job = load({});
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kUsage);
}

TEST(OutlineKeys, SeesOnlyTheOutermostObject) {
  const auto keys = outline_keys(R"( {"a": {"b": 1, "c": "x\"}{"}, "d" : [ {"e": 2} ], "f":3} {"g": 1})");
  ASSERT_EQ(keys.size(), 3U);
  EXPECT_EQ(keys[0].name, "a");
  EXPECT_EQ(keys[0].value, '{');
  EXPECT_EQ(keys[1].name, "d");
  EXPECT_EQ(keys[1].value, '[');
  EXPECT_EQ(keys[2].name, "f");
}

TEST(OutlineKeys, StopsWhereTheTextDoes) {
  EXPECT_TRUE(outline_keys("").empty());
  EXPECT_TRUE(outline_keys("[{\"a\": 1}]").empty());
  EXPECT_TRUE(outline_keys("{\"a").empty());
  EXPECT_TRUE(outline_keys("{\"").empty());
  ASSERT_EQ(outline_keys("{\"a\":").size(), 1U);
  EXPECT_EQ(outline_keys("{\"a\":")[0].value, '\0');
}

}  // namespace
}  // namespace lockstep
