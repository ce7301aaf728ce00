// Makes strings that came from inputs safe to print, and measures and cuts them by terminal columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

/// `text` with everything escaped that could move the cursor, hide or reorder what a terminal shows: C0 and
/// DEL ("\x1b", "\n", "\t"), C1 and invisible or direction-changing code points ("\u202e"), bytes that are no
/// UTF-8 ("\xff"). The rest is left as it is, a backslash too. The result is one line of valid UTF-8.
std::string printable(std::string_view text);

/// Columns that valid UTF-8 takes on a terminal; East Asian wide characters take two.
std::size_t display_width(std::string_view text);

/// At most `width` columns of valid UTF-8; "..." at the end shows that something was cut.
std::string cut_to_width(std::string_view text, std::size_t width);

}  // namespace lockstep
