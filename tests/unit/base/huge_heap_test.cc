// That the heap of a big job is asked for in large pages.
#include "base/huge_heap.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

/// Bytes of mappings of the heap that carry the advice ("hg" in VmFlags).
std::size_t advised_bytes_of_heap() {
  std::ifstream maps("/proc/self/smaps");
  std::size_t bytes = 0;
  std::size_t size = 0;
  bool is_heap = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("-") != std::string::npos && line.find(' ') > line.find('-') && line.find(':') > line.find(' ')) {
      is_heap = line.find("[heap]") != std::string::npos;
    }
    if (line.starts_with("Size:")) size = std::stoull(line.substr(5)) * 1024;
    if (is_heap && line.starts_with("VmFlags:") && line.find(" hg") != std::string::npos) bytes += size;
  }
  return bytes;
}

bool system_has_large_pages() {
  std::ifstream enabled("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  return static_cast<bool>(std::getline(enabled, text));
}

TEST(HugeHeap, BacksWhatTheHeapGrowsByAndNothingBefore) {
  if (!system_has_large_pages()) GTEST_SKIP() << "the system has no transparent large pages";
  EXPECT_EQ(advised_bytes_of_heap(), 0U);
  const char* const before = static_cast<const char*>(::sbrk(0));
  std::vector<std::unique_ptr<char[]>> tables;
  for (int i = 0; i < 256; ++i) {
    extend_heap_in_huge_pages();
    tables.push_back(std::make_unique<char[]>(std::size_t{200} << 10));
    std::memset(tables.back().get(), i, std::size_t{200} << 10);
  }
  extend_heap_in_huge_pages();
  const auto grown = static_cast<std::size_t>(static_cast<const char*>(::sbrk(0)) - before);
  if (grown == 0) GTEST_SKIP() << "another allocator than that of glibc, which does not use the heap";
  EXPECT_GE(advised_bytes_of_heap(), grown);
  for (int i = 0; i < 256; ++i) {
    const auto& table = tables[static_cast<std::size_t>(i)];
    EXPECT_EQ(table[0], static_cast<char>(i));
    EXPECT_EQ(table[(200 << 10) - 1], static_cast<char>(i));
  }
}

}  // namespace
}  // namespace lockstep
