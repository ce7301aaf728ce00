// What the loader would see of an ELF file: read from its bytes, nothing is loaded or executed. For files of
// any origin.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct ElfFile {
  bool is_64_bit = false;
  std::uint16_t machine = 0;  ///< e_machine
  bool is_shared = false;     ///< ET_DYN: a library, or a position-independent program
  std::string interpreter{};  ///< the loader; empty: a library, or a statically linked program
  // The rest is filled for 64-bit files only.
  std::string soname{};
  std::vector<std::string> needed{};  ///< DT_NEEDED, in order
  std::string rpath{};
  std::string runpath{};
};

bool is_elf(std::string_view contents);

/// kMalformed, naming `path`, for what is no ELF file or refers to places outside of itself.
Result<ElfFile> read_elf(std::string_view contents, std::string_view path);

/// Which of `names` the file defines for itself or others, and which it takes from elsewhere: from its symbol
/// tables, as far as it has them (a stripped program keeps the dynamic one). Linear in the number of symbols;
/// 64-bit files only.
struct ElfSymbols {
  std::set<std::string_view> defined{};
  std::set<std::string_view> imported{};
};
ElfSymbols find_symbols(std::string_view contents, std::span<const std::string_view> names);

/// "x86-64", "aarch64", or "machine 243".
std::string machine_name(std::uint16_t machine);

}  // namespace lockstep
