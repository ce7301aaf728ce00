// A line on stderr that says how far the reading of a long input is: on a terminal only, and gone afterwards.
#pragma once

#include <chrono>
#include <mutex>

#include "read/formats.h"

namespace lockstep {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// What to give to LoadOptions; empty where stderr is no terminal. Must not outlive this.
  ReadProgress listener();
  void clear();

 private:
  void show(std::string_view path, std::uint64_t taken, std::uint64_t size);

  const bool is_terminal_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point next_;
  bool is_shown_ = false;
};

}  // namespace lockstep
