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

/// The definition that the library or program with `address` in it finds in itself and in what it needs: what it would call if nothing were
/// preloaded. Where that cannot be known, the one of the library called `name`, else any. `in_library`: it is of that library. Cold.
void* find_beside(const void* address, const char* symbol, const char* name, bool& in_library) noexcept;

}  // namespace lockstep::shim
