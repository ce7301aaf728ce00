// Finds the library function that an interposed one stands before.
#pragma once

namespace lockstep::shim {

/// The next definition of `symbol` behind this library in the host's global scope; else the one in a loaded
/// library whose file name begins with one of `libraries` (they may have come in by dlopen with RTLD_LOCAL,
/// where RTLD_NEXT does not look). Null: nowhere. Takes the loader's lock: for a function's first call only.
/// Keeps errno.
void* find_original(const char* symbol, const char* const* libraries) noexcept;

/// The definition of `symbol` that the host itself sees: a variable of a library that an executable may hold
/// a copy of.
void* find_visible(const char* symbol, const char* const* libraries) noexcept;

}  // namespace lockstep::shim
