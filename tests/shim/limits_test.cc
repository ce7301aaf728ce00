// What the recorder does where it cannot have what it wants: it stays off with one line, or takes less, and
// the host runs on.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "compare_traces.h"
#include "run_host.h"

namespace lockstep::shim_test {
namespace {

namespace fs = std::filesystem;

HostRun run_plain(HostOptions options, const std::string& mode = "plain") {
  return run_host({SHIM_HOST, mode}, options);
}

void expect_off(const HostRun& run) {
  const HostRun without = run_plain({});
  EXPECT_EQ(run.out, without.out);
  EXPECT_EQ(run.status, without.status);
  EXPECT_EQ(run.err.rfind("lockstep: recording is off: ", 0), 0U) << run.err;
  EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
}

std::size_t files_under(const std::string& directory) {
  std::size_t files = 0;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(directory, error))
    files += entry.is_regular_file() ? 1U : 0U;
  return files;
}

std::function<void()> limit(int resource, rlim_t value) {
  return [=] {
    const rlimit both{value, value};
    setrlimit(static_cast<__rlimit_resource>(resource), &both);
  };
}

TEST(Limits, AFileSizeLimitMakesTheRingSmaller) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = recorded_into(directory.path());
  options.before_exec = limit(RLIMIT_FSIZE, 1 << 20);
  const HostRun run = run_plain(options);
  EXPECT_EQ(run.status, 7);
  EXPECT_EQ(run.err, "");
  const auto traces = read_traces(directory.path());
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_LE(traces[0].header.file_bytes, 1U << 20);
}

TEST(Limits, ATinyFileSizeLimitSwitchesOff) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = recorded_into(directory.path());
  options.before_exec = limit(RLIMIT_FSIZE, 64 << 10);
  expect_off(run_plain(options));
  EXPECT_EQ(files_under(directory.path()), 0U);
}

TEST(Limits, NoFileDescriptorSwitchesOff) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = recorded_into(directory.path());
  options.env.emplace_back("STUB_NOFILE", "3");
  expect_off(run_plain(options, "plain"));
  EXPECT_EQ(files_under(directory.path()), 0U);
}

TEST(Limits, NoAddressSpaceSwitchesOff) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = recorded_into(directory.path());
  options.env.emplace_back("LOCKSTEP_RING", "256M");
  options.before_exec = limit(RLIMIT_AS, 200 << 20);
  expect_off(run_plain(options));
  EXPECT_EQ(files_under(directory.path()), 0U);
}

TEST(Limits, AFullDiskSwitchesOff) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to mount a small file system";
  const TemporaryDirectory directory;
  if (mount("none", directory.path().c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "cannot mount a tmpfs";
  HostOptions options;
  options.env = recorded_into(directory.path());
  expect_off(run_plain(options));
  EXPECT_EQ(files_under(directory.path()), 0U);
  umount(directory.path().c_str());
}

TEST(Limits, NeverMoreThanATwentiethOfTheFreeSpace) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to mount a small file system";
  const TemporaryDirectory directory;
  if (mount("none", directory.path().c_str(), "tmpfs", 0, "size=100m") != 0)
    GTEST_SKIP() << "cannot mount a tmpfs";
  HostOptions options;
  options.env = recorded_into(directory.path());
  EXPECT_EQ(run_plain(options).err, "");
  const auto traces = read_traces(directory.path());
  EXPECT_EQ(traces.size(), 1U);
  if (!traces.empty()) {
    EXPECT_LE(traces[0].header.file_bytes, 5U << 20);
  }
  umount(directory.path().c_str());
}

TEST(Limits, AnUnusableDirectorySwitchesOff) {
  HostOptions options;
  options.env = recorded_into("/dev/null/traces");
  expect_off(run_plain(options));
}

TEST(Limits, AnUnwritableDirectorySwitchesOff) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const TemporaryDirectory directory;
  fs::permissions(directory.path(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                        fs::perms::others_exec);
  HostOptions options;
  options.env = recorded_into(directory.path());
  options.before_exec = [] { [[maybe_unused]] const int changed = setuid(65534); };
  const HostRun run = run_plain(options);
  if (run.status == 127) GTEST_SKIP() << "the build tree is not readable for others";
  expect_off(run);
}

TEST(Limits, AVanishingDirectoryHarmsNobody) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = recorded_into(directory.path() + "/traces");
  const HostRun run = run_plain(options, "vanish");
  EXPECT_EQ(run.out, "sum 3\nsum 3\n");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.status, 0);
}

TEST(Limits, SecureExecutionIsLeftAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a set-user-id program";
  const TemporaryDirectory directory;
  fs::permissions(directory.path(), fs::perms::all);
  const std::string host = directory.path() + "/host";
  fs::copy_file(SHIM_HOST, host);
  chmod(host.c_str(), 04755);
  HostOptions options;
  options.env = recorded_into(directory.path() + "/traces");
  options.before_exec = [] { [[maybe_unused]] const int changed = setuid(65534); };
  const HostRun run = run_host({host, "plain"}, options);
  if (run.status == 127) GTEST_SKIP() << "the build tree is not readable for others";
  EXPECT_EQ(run.out, "sum 3\n");
  EXPECT_EQ(run.status, 7);
  EXPECT_EQ(files_under(directory.path() + "/traces"), 0U);
}

TEST(Limits, FilesArePrivateUnlessAsked) {
  for (const auto& [mode, expected] :
       {std::pair<std::string, mode_t>{"", 0600}, {"0640", 0640}, {"666", 0666}, {"7777", 0600}}) {
    const TemporaryDirectory directory;
    HostOptions options;
    options.env = recorded_into(directory.path());
    options.env.emplace_back("LOCKSTEP_MODE", mode);
    options.before_exec = [] { umask(077); };
    run_plain(options);
    const auto traces = find_traces(directory.path());
    ASSERT_EQ(traces.size(), 1U);
    struct stat info {};
    stat(traces[0].c_str(), &info);
    EXPECT_EQ(info.st_mode & 07777, mode == "7777" ? 0666U : expected) << mode;
  }
}

TEST(Limits, BlocksAreReserved) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = recorded_into(directory.path());
  run_plain(options);
  const auto traces = find_traces(directory.path());
  ASSERT_EQ(traces.size(), 1U);
  struct stat info {};
  stat(traces[0].c_str(), &info);
  EXPECT_GE(static_cast<std::uint64_t>(info.st_blocks) * 512, static_cast<std::uint64_t>(info.st_size));
}

}  // namespace
}  // namespace lockstep::shim_test
