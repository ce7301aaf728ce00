// What a file that is no evidence of ours seems to be, for the message that says so.
#pragma once

#include <string_view>

namespace lockstep {

/// "an ELF program or library", "a gzip archive: unpack it first", "nothing but NUL bytes", ...; "text of no known form" or
/// "binary data of no known form" where nothing fits; "empty" for an empty file. Looks at the first bytes only.
std::string_view what_it_looks_like(std::string_view head);

}  // namespace lockstep
