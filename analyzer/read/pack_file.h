// Unpacks what `lockstep pack` made, in memory. For files of any origin.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "lockstep/pack_format.h"

namespace lockstep {

bool looks_like_pack(std::string_view head);

struct PackMember {
  pack::MemberKind kind{};
  std::string name{};  ///< as the pack says: never a place to write to
  std::string_view
      content{};  ///< at an address divisible by 64; 64 zero bytes follow; valid during the call only
};

/// What came of unpacking.
struct Unpacked {
  std::uint32_t redacted = 0;  ///< pack::Redacted
  std::uint64_t tail = 0;
  std::size_t members = 0;
  std::optional<Error> damage{};  ///< the members before it were whole and are used; nothing behind it was
};

/// Gives each member to `use`, in order, until that returns false. An Error if not even the header is right,
/// or the pack is for later readers.
Result<Unpacked> unpack(std::string_view contents, std::string_view path,
                        const std::function<bool(const PackMember&)>& use);

}  // namespace lockstep
