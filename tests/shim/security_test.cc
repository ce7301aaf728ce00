// What SECURITY.md claims of the recorder, each by a test; those that are tests of something else as well are named there.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "read_trace.h"
#include "run_host.h"

namespace lockstep::shim_test {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Security, CallsOnlyTheFunctionsOfTheCheckedInList) {
  const HostRun run = run_host({"nm", "-D", "--undefined-only", LOCKSTEP_SHIM_LIBRARY});
  std::set<std::string> imported;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(line.rfind(' ') + 1);
    imported.insert(name.substr(0, name.find('@')));
  }
  std::set<std::string> expected;
  std::istringstream list(content_of(std::string(SHIM_TEST_DIR) + "/imported_symbols.txt"));
  for (std::string line; std::getline(list, line);) {
    if (!line.empty() && line[0] != '#') expected.insert(line);
  }
  // Fewer is fine: compilers and other machines differ in which simple functions they call.
  for (const std::string& name : imported) EXPECT_TRUE(expected.contains(name)) << name << " is not on the list";
  for (const char* never : {"socket", "connect", "pthread_create", "clone", "fork", "vfork", "execve", "posix_spawn", "system", "popen",
                            "setenv", "putenv", "exit", "abort", "sigaction", "signal", "malloc"}) {
    EXPECT_FALSE(expected.contains(never)) << never;
  }
}

/// How often each system call is made that opens a socket, or starts or signals a process or thread.
std::map<std::string, int> traced_calls(const std::vector<std::pair<std::string, std::string>>& env, const std::string& log) {
  std::vector<std::string> command{"strace", "-f", "-qq", "-e", "trace=%network,%process,tgkill,kill", "-o", log};
  for (const auto& [name, value] : env) command.insert(command.end(), {"-E", name + "=" + value});
  command.insert(command.end(), {SHIM_HOST, "plain"});
  if (run_host(command).status != 7) return {};
  std::map<std::string, int> calls;
  std::istringstream lines(content_of(log));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find(' ') + 1;
    ++calls[line.substr(begin, line.find_first_of("( ", begin) - begin)];
  }
  return calls;
}

TEST(Security, OpensNoSocketAndStartsNoThreadOrProcess) {
  const TemporaryDirectory directory;
  const auto without = traced_calls({}, directory.path() + "/without");
  if (without.empty()) GTEST_SKIP() << "strace is not installed, or may not trace";
  EXPECT_EQ(traced_calls(recorded_into(directory.path() + "/traces"), directory.path() + "/with"), without);
  EXPECT_EQ(find_traces(directory.path() + "/traces").size(), 1U) << "it did record";
}

TEST(Security, FilesHoldNothingOfTheMessages) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = recorded_into(directory.path());
  EXPECT_EQ(run_host({CONTENTS_HOST}, options).out, "received\n");
  const auto traces = find_traces(directory.path());
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_GE(read_trace(traces[0]).calls.size(), 500U);
  EXPECT_EQ(content_of(traces[0]).find("content-of-"), std::string::npos);
}

TEST(Security, TextsInTheFileAreTheNamedOnes) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.env = recorded_into(directory.path());
  options.env.emplace_back("LOCKSTEP_RUN", "nightly");
  run_host({SHIM_HOST, "plain"}, options);
  const auto traces = find_traces(directory.path());
  ASSERT_EQ(traces.size(), 1U);
  const ReadTrace trace = read_trace(traces[0]);
  std::vector<std::string> known{trace.host, trace.program, trace.run, trace.launcher, trace.version, trace.directory, trace.library};
  for (const auto& [id, text] : trace.modules) known.push_back(text);
  for (const auto* names : {&trace.datatypes, &trace.redops}) {
    for (const auto& [id, named] : *names) known.push_back(named.first);
  }
  for (const auto& [id, comm] : trace.comms) known.push_back(comm.name);
  known.insert(known.end(), trace.notes.begin(), trace.notes.end());
  for (const auto& [id, text] : trace.comm_names) known.push_back(text);
  // Any longer stretch of text in the file is a part of one of them.
  const std::string content = content_of(traces[0]);
  for (std::size_t at = 0; at < content.size();) {
    std::size_t end = at;
    while (end < content.size() && content[end] >= ' ' && content[end] <= '~') ++end;
    const std::string text = content.substr(at, end - at);
    const bool named = std::ranges::any_of(known, [&text](const std::string& name) {
      return text.find(name) != std::string::npos ? !name.empty() : name.find(text) != std::string::npos;
    });
    if (text.size() >= 12) {
      EXPECT_TRUE(named) << text;
    }
    at = end + 1;
  }
}

}  // namespace
}  // namespace lockstep::shim_test
