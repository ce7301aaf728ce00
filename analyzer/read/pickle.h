// Reads a Python pickle as plain data. Nothing is imported, called or built: an opcode that would is refused by its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "read/plain_values.h"

namespace lockstep {

/// Why and where reading stopped before the end.
struct PickleStop {
  bool truncated = false;  ///< the bytes end; what came before is good
  std::string problem{};   ///< with the offset
};

/// Protocols 2 to 5, as torch's C++ pickler and CPython's write plain data. Feeds `builder`; nothing returned = read to STOP.
/// O(bytes); memory as PlainBuilder says and 16 bytes for each memo.
std::optional<PickleStop> read_pickle(std::string_view bytes, PlainBuilder& builder);

}  // namespace lockstep
