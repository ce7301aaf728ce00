// The only words the shim ever says to a person: at most one line on stderr per process.
#pragma once

namespace lockstep::shim {

/// "lockstep: recording is off: <reason> (<path>)"; later calls say nothing. Keeps errno.
void say_recording_is_off(const char* reason, const char* path) noexcept;

}  // namespace lockstep::shim
