// The command line.
#pragma once

#include <string>

#include "config.h"

namespace zero1 {

struct Options {
  Config config;
  std::string text_file;  ///< empty = the text that the program carries
  std::string csv_file;
  int timeout_s = 60;  ///< without a finished step; 0 = wait for ever
  bool print_plan = false;

  std::string message;  ///< help or a fault; empty = go on
  int exit_code = 0;    ///< with a message: 0 = help, 2 = a fault
};

Options parse_options(int argc, char** argv);

}  // namespace zero1
