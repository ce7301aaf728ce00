#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>

#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

TEST(MappedFile, HoldsTheBytesOfASmallFile) {
  const TempDir dir;
  const auto file = MappedFile::open(dir.write("f", "abc\n"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->contents(), "abc\n");
}

TEST(MappedFile, HoldsAnEmptyFile) {
  const TempDir dir;
  const auto file = MappedFile::open(dir.write("f", ""));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->contents().empty());
}

TEST(MappedFile, PadsMappedAndReadFilesWithZeros) {
  const TempDir dir;
  // A whole number of pages: there the padding cannot be the rest of the last page.
  for (const std::size_t size : {std::size_t{4096}, MappedFile::kMaxReadBytes + 4096}) {
    const auto file = MappedFile::open(dir.write("f", std::string(size, 'x')));
    ASSERT_TRUE(file);
    const std::string_view contents = file->contents();
    ASSERT_EQ(contents.size(), size);
    EXPECT_TRUE(std::all_of(contents.begin(), contents.end(), [](char c) { return c == 'x'; }));
    EXPECT_EQ(std::string_view(contents.data() + size, MappedFile::kPaddingBytes),
              std::string(MappedFile::kPaddingBytes, '\0'));
  }
}

TEST(MappedFile, IsMovable) {
  const TempDir dir;
  auto file = MappedFile::open(dir.write("f", std::string(MappedFile::kMaxReadBytes + 1, 'y')));
  ASSERT_TRUE(file);
  MappedFile moved = std::move(*file);
  EXPECT_EQ(moved.contents().front(), 'y');
  moved = std::move(*MappedFile::open(dir.write("g", "short")));
  EXPECT_EQ(moved.contents(), "short");
}

TEST(MappedFile, ReadsAPipeToItsEnd) {
  const TempDir dir;
  const std::string path = dir.path() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string text(300000, 'p');
  std::thread writer([&] {
    const int out = ::open(path.c_str(), O_WRONLY);
    std::size_t done = 0;
    while (out >= 0 && done < text.size()) {
      const ssize_t wrote = ::write(out, text.data() + done, text.size() - done);
      if (wrote <= 0) break;
      done += static_cast<std::size_t>(wrote);
    }
    if (out >= 0) ::close(out);
  });
  const auto file = MappedFile::open(path);
  writer.join();
  ASSERT_TRUE(file);
  EXPECT_EQ(file->contents(), text);
}

TEST(MappedFile, SaysWhyAPathCannotBeRead) {
  const TempDir dir;
  struct {
    std::string path;
    std::string reason;
  } const cases[] = {{dir.path() + "/absent", "No such file"}, {dir.path(), "Is a directory"}, {"/dev/zero", "is a device"}};
  for (const auto& [path, reason] : cases) {
    const auto file = MappedFile::open(path);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code, ErrorCode::kUnreadable);
    EXPECT_NE(file.error().message.find(path), std::string::npos);
    EXPECT_NE(file.error().message.find(reason), std::string::npos) << file.error().message;
  }
}

TEST(MappedFileShortened, GivesZerosForWhatIsGone) {
  const TempDir dir;
  const std::string path = dir.write("f", std::string(1 << 20, 'x'));
  auto file = MappedFile::open(path, 0);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->was_shortened());
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  EXPECT_TRUE(file->was_shortened()) << "also before anything of it is read";
  const std::string_view contents = file->contents();
  EXPECT_EQ(std::ranges::count(contents, 'x'), 4096);
  EXPECT_EQ(std::ranges::count(contents, '\0'), (1 << 20) - 4096);
  const MappedFile moved = std::move(*file);
  EXPECT_TRUE(moved.was_shortened());
  ASSERT_EQ(::truncate(path.c_str(), 1 << 20), 0);
  EXPECT_TRUE(moved.was_shortened()) << "that it has grown again does not bring back what was in it";
}

TEST(MappedFileShortened, IsNotAFileThatWasReplacedOrRemoved) {
  const TempDir dir;
  const std::string path = dir.write("f", std::string(1 << 20, 'x'));
  const auto file = MappedFile::open(path, 0);
  ASSERT_TRUE(file);
  std::filesystem::rename(dir.write("short", "s"), path);
  EXPECT_FALSE(file->was_shortened());
  std::filesystem::remove(path);
  EXPECT_EQ(std::ranges::count(file->contents(), 'x'), 1 << 20);
  EXPECT_FALSE(file->was_shortened());
}

TEST(MappedFileShortenedDeathTest, LeavesOtherFaultsAlone) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const TempDir dir;
  const std::string path = dir.write("f", std::string(8192, 'x'));
  const auto touch = [&] {
    const auto ours = MappedFile::open(path, 0);
    const int descriptor = ::open(path.c_str(), O_RDONLY);
    const void* theirs = ::mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (!ours || theirs == MAP_FAILED || ::truncate(path.c_str(), 0) != 0) ::_exit(1);
    ::_exit(static_cast<const volatile char*>(theirs)[4096]);
  };
#ifdef __SANITIZE_ADDRESS__
  EXPECT_DEATH(touch(), "BUS");
#else
  EXPECT_EXIT(touch(), testing::KilledBySignal(SIGBUS), "");
#endif
}

}  // namespace
}  // namespace lockstep
