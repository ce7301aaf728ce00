#include "doctor/elf_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/mapped_file.h"

namespace lockstep {
namespace {

constexpr std::string_view kNames[] = {"main", "malloc", "no_such_function_anywhere"};

std::string own_program() {
  const auto file = MappedFile::open("/proc/self/exe");
  return file ? std::string(file->contents()) : std::string();
}

TEST(ElfFile, OfThisProgram) {
  const std::string contents = own_program();
  const auto elf = read_elf(contents, "p");
  ASSERT_TRUE(elf) << elf.error().message;
  EXPECT_TRUE(elf->is_64_bit);
  EXPECT_NE(elf->interpreter.find("ld-linux"), std::string::npos) << elf->interpreter;
  EXPECT_NE(std::ranges::find(elf->needed, "libc.so.6"), elf->needed.end());
  EXPECT_TRUE(find_symbols(contents, kNames).defined.contains("main"));
  EXPECT_FALSE(find_symbols(contents, kNames).imported.contains("no_such_function_anywhere"));
}

TEST(ElfFileDamage, SaysWhatItIs) {
  EXPECT_EQ(read_elf("", "p").error().message, "p: not an ELF program or library");
  EXPECT_EQ(read_elf(std::string(5000, 'x'), "p").error().message, "p: not an ELF program or library");
  std::string contents = own_program().substr(0, 4096);
  contents[5] = 2;
  EXPECT_EQ(read_elf(contents, "p").error().message, "p: an ELF file for a big-endian machine");
  EXPECT_EQ(read_elf(own_program().substr(0, 80), "p").error().message,
            "p: an ELF file that was cut: its segments are not all there");
}

TEST(ElfFileDamage, TruncatedAndFlipped) {
  // A whole program is large; what steers the reader is its beginning, its dynamic section and its section
  // headers.
  const std::string whole = own_program();
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::string contents =
        whole.substr(0, trial % 3 == 0 ? random() % 8192 : std::min<std::size_t>(whole.size(), 1U << 20));
    for (int flips = 0; flips < 20 && !contents.empty(); ++flips)
      contents[random() % std::min<std::size_t>(contents.size(), flips % 2 == 0 ? 1024 : contents.size())] =
          static_cast<char>(random());
    const auto elf = read_elf(contents, "p");
    const std::string message = elf ? "p: fine" : elf.error().message;
    EXPECT_TRUE(message.starts_with("p: ")) << message;
    find_symbols(contents, kNames);
  }
}

TEST(ElfFileDamage, TablesThatClaimToBeHuge) {
  std::string contents = own_program();
  // Sizes and counts of segments and sections of all ones: so many entries may well be in a file of this size.
  std::fill(contents.begin() + 56, contents.begin() + 62, '\xff');
  const auto elf = read_elf(contents, "p");
  EXPECT_TRUE(!elf || elf->needed.size() < contents.size());
  EXPECT_LE(find_symbols(contents, kNames).defined.size(), std::size(kNames));
}

}  // namespace
}  // namespace lockstep
