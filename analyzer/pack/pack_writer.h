// Writes the container of FORMAT.md's section on packs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lockstep/pack_format.h"

namespace lockstep {

/// Takes members one by one and gives away compressed bytes as frames fill, so that memory stays at a frame
/// or a member.
class PackWriter {
 public:
  /// `write` takes the bytes of the file in order; false = it could not, and nothing more is given to it.
  PackWriter(const pack::FileHeader& header, std::function<bool(std::string_view)> write);

  /// False: a write failed, or the member is larger than a frame may be.
  [[nodiscard]] bool add(pack::MemberKind kind, std::string_view name, std::string_view content);
  /// What is left.
  [[nodiscard]] bool finish();

  std::uint64_t bytes_written() const { return bytes_written_; }

 private:
  bool write(std::string_view bytes);
  bool flush_frame();

  std::function<bool(std::string_view)> write_;
  std::string frame_;  // uncompressed
  std::uint64_t bytes_written_ = 0;
  bool good_ = true;
};

}  // namespace lockstep
