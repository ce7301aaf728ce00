// Where liblockstep.so is, for the subcommands that preload it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

/// Absolute path of the recorder: LOCKSTEP_LIBRARY if set, else the one installed with this command, else the
/// one of the build tree that this command lies in. kUnreadable if there is none.
Result<std::string> find_recorder_library();

/// The library for LD_AUDIT that lies beside the recorder; empty: it is not there.
std::string find_audit_library(const std::string& recorder);

/// What LD_PRELOAD must be (or LD_AUDIT, whose list is split at colons only) so that `library` comes first and
/// `present` is kept; `present` itself if it begins with it.
std::string preload_with(const std::string& library, std::string_view present);

/// Why the loader could not take this path from LD_PRELOAD, in a few words; empty: it can. The list is split
/// at spaces and colons and cannot be quoted, and a dollar sign may begin a token of the loader (ld.so(8)).
std::string_view preload_obstacle(std::string_view path);

}  // namespace lockstep
