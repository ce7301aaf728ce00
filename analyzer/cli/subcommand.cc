// How every subcommand says that it cannot do what was asked.
#include "cli/subcommand.h"

#include <fmt/format.h>

#include <cstdio>

#include "report/printable.h"

namespace lockstep {

int usage_error(const Subcommand& subcommand, std::string_view message) {
  fmt::print(stderr, "lockstep {}: {}\nusage: lockstep {}\n", subcommand.name, printable(message),
             subcommand.usage);
  return kExitUsage;
}

int input_error(const Error& error) {
  fmt::print(stderr, "lockstep: {}\n", printable(error.message));
  switch (error.code) {
    case ErrorCode::kUsage:
      return kExitUsage;
    case ErrorCode::kUnreadable:
    case ErrorCode::kMalformed:
    case ErrorCode::kUnsupported:
      return kExitUnreadable;
  }
  return kExitUnreadable;
}

}  // namespace lockstep
