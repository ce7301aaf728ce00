// The heap of a process that holds a big job, in large pages: its tables of a few hundred KiB each are too small for
// huge_pages.h and so many that page faults cost more than filling them.
#pragma once

namespace lockstep {

/// To be called now and then while a job grows. From the first call on the C library takes blocks of up to 32 MiB from
/// one heap, which it extends by 64 MiB at a time, and each call asks the system to back what is new with large pages
/// (where glibc and Linux can). Costs nothing to speak of where the heap has not grown. Memory that is not used is not
/// backed, but for the rest of a page of 2 MiB.
void extend_heap_in_huge_pages() noexcept;

}  // namespace lockstep
