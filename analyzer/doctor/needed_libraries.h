// Which libraries the loader would bring into a program, found as ld.so(8) does but by reading files only.
#pragma once

#include <string>
#include <vector>

#include "doctor/elf_file.h"

namespace lockstep {

struct NeededLibrary {
  std::string name{};  ///< as its user asks for it: "libmpi.so.40"
  std::string path{};  ///< where it was found; empty = nowhere
};

/// Everything that `program` needs, and what that needs, breadth first, each name once. Knows
/// LD_LIBRARY_PATH, RPATH, RUNPATH, $ORIGIN and ld.so.conf; not ld.so.preload, audit libraries or hardware
/// variants. At most 4096.
std::vector<NeededLibrary> needed_libraries(const std::string& path, const ElfFile& program);

}  // namespace lockstep
