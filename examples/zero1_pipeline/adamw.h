// AdamW on one element: decoupled weight decay, bias-corrected moments.
#pragma once

#include <cmath>
#include <cstddef>

#include "numbers.h"

namespace zero1 {

template <class Master, class Param, class Real>
struct AdamW {
  Master* weight;
  Master* first;
  Master* second;
  const Param* grad;
  Param* stored;         ///< the weight as layers see it
  double inverse_scale;  ///< of the gradient: undoes the loss scale and clips
  double rate, beta1, beta2, epsilon, decay;
  double correction1, correction2;  ///< 1 - beta^t

  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const Master g = static_cast<Master>(static_cast<Real>(grad[i])) * static_cast<Master>(inverse_scale);
    const Master m = static_cast<Master>(beta1) * first[i] + static_cast<Master>(1 - beta1) * g;
    const Master v = static_cast<Master>(beta2) * second[i] + static_cast<Master>(1 - beta2) * g * g;
    const Master step = m / static_cast<Master>(correction1) /
                        (std::sqrt(v / static_cast<Master>(correction2)) + static_cast<Master>(epsilon));
    first[i] = m;
    second[i] = v;
    weight[i] -= static_cast<Master>(rate) * (step + static_cast<Master>(decay) * weight[i]);
    stored[i] = static_cast<Param>(weight[i]);
  }
};

}  // namespace zero1
