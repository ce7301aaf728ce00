// Programs that open NCCL by its name instead of being linked with it: what is preloaded does not stand before those calls.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// The word of the command that does, or seems to: a file that names the library (a script, a program that is not linked with it), or
/// a framework that is known to. Empty: none. Reads files, executes nothing.
std::string opens_nccl_by_name(std::span<const std::string_view> command);

/// Whether a program has NCCL inside although its symbols were removed: by names of settings that only the library itself knows.
bool has_nccl_inside(std::string_view contents);

}  // namespace lockstep
