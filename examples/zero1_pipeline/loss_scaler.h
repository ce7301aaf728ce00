// Dynamic loss scale: halved by an overflow, doubled after a window of steps without one. Powers of two, so
// scaling is exact.
#pragma once

#include <algorithm>

#include "config.h"

namespace zero1 {

class LossScaler {
 public:
  explicit LossScaler(const Config& config) : window_(config.scale_window) {
    if (config.loss_scale > 0)
      scale_ = config.loss_scale;
    else
      scale_ = config.precision == Precision::kMixed ? 65536.0 : 1.0;
    is_dynamic_ = config.loss_scale > 0 || config.precision == Precision::kMixed;
  }
  double scale() const { return scale_; }
  void update(bool overflow) {
    if (overflow) {
      good_steps_ = 0;
      if (is_dynamic_) scale_ = std::max(scale_ / 2, 1.0);
    } else if (++good_steps_ == window_) {
      good_steps_ = 0;
      if (is_dynamic_) scale_ *= 2;
    }
  }

 private:
  double scale_ = 1;
  int window_;
  int good_steps_ = 0;
  bool is_dynamic_ = false;
};

}  // namespace zero1
