// What the user sees of a run: one line for each step, a progress line on a terminal, and a CSV file.
#pragma once

#include <cstdio>
#include <string>

#include "pipeline_engine.h"

namespace zero1 {

class TrainingLog {
 public:
  /// Throws ConfigError if the CSV file cannot be written. Only rank 0 has one.
  TrainingLog(const std::string& csv_file, int steps);
  TrainingLog(const TrainingLog&) = delete;
  TrainingLog& operator=(const TrainingLog&) = delete;
  ~TrainingLog();
  void step(int number, const StepResult& result, double milliseconds);

 private:
  std::FILE* csv_ = nullptr;
  int steps_;
  bool shows_progress_;
};

}  // namespace zero1
