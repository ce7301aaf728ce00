#include "training_log.h"

#include <unistd.h>

namespace zero1 {

TrainingLog::TrainingLog(const std::string& csv_file, int steps)
    : steps_(steps), shows_progress_(isatty(STDERR_FILENO) != 0) {
  if (csv_file.empty()) return;
  csv_ = std::fopen(csv_file.c_str(), "w");
  if (csv_ == nullptr) throw ConfigError("--csv " + csv_file + ": cannot be written");
  std::fprintf(csv_, "step,loss,grad_norm,loss_scale,skipped,milliseconds\n");
}

TrainingLog::~TrainingLog() {
  if (csv_ != nullptr) std::fclose(csv_);
}

void TrainingLog::step(int number, const StepResult& result, double milliseconds) {
  if (shows_progress_) std::fprintf(stderr, "\r\033[K");
  if (result.skipped)
    std::printf("step %4d  loss %9.6f  skipped: a gradient overflowed, loss scale was %g  %8.2f ms\n", number,
                result.loss, result.loss_scale, milliseconds);
  else
    std::printf("step %4d  loss %9.6f  grad norm %9.6f  %8.2f ms\n", number, result.loss, result.grad_norm,
                milliseconds);
  std::fflush(stdout);
  if (csv_ != nullptr) {
    std::fprintf(csv_, "%d,%.9g,%.9g,%g,%d,%.3f\n", number, result.loss, result.grad_norm, result.loss_scale,
                 result.skipped ? 1 : 0, milliseconds);
    std::fflush(csv_);
  }
  if (!shows_progress_) return;
  const int done = 40 * (number + 1) / steps_;
  std::fprintf(stderr, "[%.*s%.*s] %d of %d steps", done, "########################################",
               40 - done, "                                        ", number + 1, steps_);
  if (number + 1 == steps_) std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace zero1
