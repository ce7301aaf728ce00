// Return addresses in programs and libraries as function, file and line, read from the files themselves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "model/job.h"

namespace lockstep {

/// The frame of an address that is not looked up: "module+0xoffset".
Frame offset_frame(const std::string& path, std::uint64_t file_offset);

/// Looks addresses up in symbol tables and debug information (DWARF) on this machine; never over a network. Where the file
/// is gone or is another build, the frame is "module+0xoffset". Without libdw at build time, always.
class NativeSites {
 public:
  NativeSites();
  ~NativeSites();
  NativeSites(const NativeSites&) = delete;
  NativeSites& operator=(const NativeSites&) = delete;

  /// Frames of the call that returns to `file_offset` in the file at `path`, innermost (inlined) first. `build_id`: raw bytes that
  /// the file must have; empty = not known. Answers are remembered.
  const std::vector<Frame>& frames(const std::string& path, const std::string& build_id, std::uint64_t file_offset);

 private:
  class Module;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Module>> modules_;
  std::map<std::tuple<std::string, std::string, std::uint64_t>, std::vector<Frame>> known_;
};

}  // namespace lockstep
