// Programs that know nothing of the stand-in, one process for each rank: unmodified, and without anything left behind.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::standin::testing {
namespace {

struct Ran {
  int status = 0;
  std::string output{};
};

Ran run(const std::string& settings, const std::string& arguments) {
  const std::string command = "LD_LIBRARY_PATH=" STANDIN_LIBRARIES " " + settings + " timeout 30 " STANDIN_PROGRAM " " + arguments + " 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  Ran ran;
  char part[1024];
  while (std::fgets(part, sizeof part, pipe) != nullptr) ran.output += part;
  const int status = pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

/// Named shared memory of NCCL's or of ours; other programs make theirs meanwhile.
std::size_t shared_files() {
  std::error_code error;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", error)) {
    const std::string name = entry.path().filename();
    count += name.find("nccl") != std::string::npos || name.find("lockstep") != std::string::npos ||
             name.find("standin") != std::string::npos;
  }
  return count;
}

TEST(Processes, RunUnmodified) {
  for (const std::string ranks : {"1", "2", "4"}) {
    const Ran ran = run("", ranks);
    EXPECT_EQ(ran.status, 0) << ran.output;
    for (int rank = 0; rank < std::stoi(ranks); ++rank)
      EXPECT_NE(ran.output.find("rank " + std::to_string(rank) + " ok\n"), std::string::npos) << ran.output;
  }
}

TEST(Processes, HangWhereTheyWouldAndAreEndedWithOneLineEach) {
  const Ran ran = run("LOCKSTEP_REHEARSE_TIMEOUT=1", "3 skip 1");
  EXPECT_EQ(ran.status, 124) << ran.output;
  EXPECT_NE(ran.output.find("rank 1 in broadcast"), std::string::npos) << ran.output;
  EXPECT_EQ(std::count(ran.output.begin(), ran.output.end(), '\n'), 3) << ran.output;
}

TEST(Processes, AKilledRankLeavesNothingBehind) {
  const std::size_t before = shared_files();
  const Ran ran = run("LOCKSTEP_REHEARSE_TIMEOUT=1 LOCKSTEP_REHEARSE_FAULT=kill:rank=2,comm=0,seq=1", "3");
  EXPECT_EQ(ran.status, 137) << ran.output;
  EXPECT_NE(ran.output.find("without rank 2"), std::string::npos) << ran.output;
  EXPECT_EQ(shared_files(), before);
}

}  // namespace
}  // namespace lockstep::standin::testing
