// The tables behind a Job; seen by job.cc and job_builder.cc only.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/job.h"

namespace lockstep {

struct Job::Data {
  std::vector<Program> programs;
  std::vector<Communicator> communicators;
  std::deque<std::string> strings{""};  // deque: views into it stay valid while it grows
  std::vector<CallSite> sites{CallSite{}};
  std::vector<OperationExtra> extras{OperationExtra{}};
  std::deque<std::string> datatypes{""};
  std::deque<std::string> redops{""};
  std::vector<std::string> sources{""};
  std::unordered_map<std::int32_t, ProgramEnd> ends_without_program;
  Library library = Library::kUnknown;
  int library_version = 0;
  bool implicit_launch_order = false;
  bool mixes_libraries = false;
  RunInfo run;
  InputQuality quality;
};

}  // namespace lockstep
