// Call sites as text: how sources write a stack frame, and how Job JSON does. Percent-escapes of Job JSON values.
#pragma once

#include <string>
#include <string_view>

#include "model/job.h"

namespace lockstep {

/// One frame from "file.py:123", "file.py:func:123", "func@file.py:123" or "func". A file may contain ':' and a
/// function "::". Text that fits none of them is taken as the function's name; it never fails.
Frame parse_frame(std::string_view text);

/// The same without the '@' form, for sources where a file may contain that sign: "file.py:func:123".
Frame parse_colon_frame(std::string_view text);

/// The value of `site=`: frames as above from the innermost outwards, '|' between them, each with percent-escapes.
CallSite parse_site(std::string_view value);

/// Text that parse_site reads back to an equal site; empty for an empty site.
std::string site_text(const CallSite& site);

/// `text` with white space, control characters, '%' and the characters of `reserved` as %XX, so that it stays one word.
std::string escape_word(std::string_view text, std::string_view reserved);
/// The opposite: %XX becomes that byte; a '%' without two hexadecimal digits stays as it is.
std::string unescape_word(std::string_view text);

}  // namespace lockstep
