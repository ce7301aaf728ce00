// What the environment asks of the recorder; read once, when the library is loaded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::shim {

inline constexpr std::size_t kMaxPath = 1024;  // small: these buffers stand on stacks of the host

struct Config {
  bool enabled = false;
  bool host_waits = true;  ///< LOCKSTEP_HOST_WAITS
  bool python = true;      ///< LOCKSTEP_PYTHON
  std::uint64_t ring_bytes = 0;
  std::uint32_t file_mode = 0;
  bool local_dir_given = false;
  char directory[kMaxPath] =
      {};  ///< LOCKSTEP_DIR; relative to the working directory at the first recorded call
  char local_directory[kMaxPath] = {};  ///< where a ring goes whose directory is on a network file system
  char run[256] = {};  ///< run identity with the attempt, from the launcher; empty = not known yet
  char launcher[32] = {};
  std::int32_t attempt = 0;
  std::int32_t rank = -1;  ///< as the launcher says; -1 = it does not
  std::int32_t ranks = 0;
  std::int32_t local_rank = -1;
};

/// Fills `config` from the environment. No allocation, no system call.
void read_config(Config& config) noexcept;

/// Without a launcher: the place that the program itself gives to this process, before its file is made. Keeps what a launcher said.
void take_rank(Config& config, std::int32_t rank, std::int32_t ranks) noexcept;

/// The value of a decimal number with nothing behind it; `fallback` for anything else.
std::int64_t parse_number(const char* text, std::int64_t fallback) noexcept;
/// "16M" -> 16777216; `fallback` for anything that is no size.
std::uint64_t parse_size(const char* text, std::uint64_t fallback) noexcept;

}  // namespace lockstep::shim
