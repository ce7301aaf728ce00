// What the library is from outside: its needs, its names, and that no MPI name was forgotten.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "run_host.h"

namespace lockstep::shim_test {
namespace {

std::set<std::string> exported_names(const std::string& library) {
  const HostRun run = run_host({"nm", "-D", "--defined-only", library});
  std::set<std::string> names;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(line.rfind(' ') + 1);
    names.insert(name.substr(0, name.find('@')));
  }
  return names;
}

std::set<std::string> words_of(const std::string& path) {
  std::ifstream file(path);
  std::set<std::string> words;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') words.insert(line);
  }
  return words;
}

TEST(Library, NeedsLibcAndTheLoaderOnly) {
  const HostRun run = run_host({"readelf", "-d", LOCKSTEP_SHIM_LIBRARY});
  const std::regex needed("NEEDED.*\\[(.*)\\]");
  std::set<std::string> libraries;
  for (std::sregex_iterator it(run.out.begin(), run.out.end(), needed), end; it != end; ++it)
    libraries.insert((*it)[1]);
  for (const std::string& library : libraries) {
    EXPECT_TRUE(library == "libc.so.6" || library.rfind("ld-linux", 0) == 0) << library;
  }
  EXPECT_EQ(libraries.count("libc.so.6"), 1U);
}

TEST(Library, RunsOnOldSystems) {
  const HostRun run = run_host({"objdump", "-T", LOCKSTEP_SHIM_LIBRARY});
  const std::regex version("GLIBC_([0-9]+)\\.([0-9]+)");
  int seen = 0;
  for (std::sregex_iterator it(run.out.begin(), run.out.end(), version), end; it != end; ++it, ++seen) {
    EXPECT_LE(std::stoi((*it)[1]) * 1000 + std::stoi((*it)[2]), 2028) << it->str();
  }
  EXPECT_GT(seen, 10);
}

TEST(Library, ExportsTheCheckedInList) {
  const std::set<std::string> names = exported_names(LOCKSTEP_SHIM_LIBRARY);
  const std::set<std::string> expected = words_of(std::string(SHIM_TEST_DIR) + "/exported_symbols.txt");
  std::vector<std::string> more, missing;
  std::ranges::set_difference(names, expected, std::back_inserter(more));
  std::ranges::set_difference(expected, names, std::back_inserter(missing));
  EXPECT_EQ(more, std::vector<std::string>{});
  EXPECT_EQ(missing, std::vector<std::string>{});
}

TEST(Library, KnowsEveryNameThatAnMpiLibraryExports) {
  const std::set<std::string> ours = exported_names(LOCKSTEP_SHIM_LIBRARY);
  std::map<std::string, std::string> reasons;
  for (const std::string& line : words_of(std::string(SHIM_SOURCE_DIR) + "/mpi/not_interposed.txt")) {
    const auto tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    reasons[line.substr(0, tab)] = line.substr(tab + 1);
  }
  for (const auto& [name, reason] : reasons) {
    EXPECT_EQ(ours.count(name), 0U) << name << " is interposed and on the list of those that are not";
    EXPECT_GT(reason.size(), 5U) << name;
  }
  int libraries = 0;
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu/libmpi.so.40", "/usr/lib/x86_64-linux-gnu/libmpich.so.12",
        "/usr/lib/aarch64-linux-gnu/libmpi.so.40", "/usr/lib/aarch64-linux-gnu/libmpich.so.12"}) {
    if (!std::filesystem::exists(path)) continue;
    ++libraries;
    for (const std::string& name : exported_names(path)) {
      if (name.rfind("MPI_", 0) != 0) continue;
      EXPECT_TRUE(ours.contains(name) || reasons.contains(name))
          << name << " of " << path << " is in no list";
    }
  }
  if (libraries == 0) GTEST_SKIP() << "no MPI library is installed";
}

}  // namespace
}  // namespace lockstep::shim_test
