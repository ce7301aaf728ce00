// Large tables in large pages: a table of 10^8 operations is filled once, and page faults would cost as much as filling it.
#pragma once

#include <cstddef>

namespace lockstep {

/// Asks the system to back these bytes with large pages; a hint, without effect on what they hold.
void prefer_huge_pages(void* begin, std::size_t bytes);

}  // namespace lockstep
