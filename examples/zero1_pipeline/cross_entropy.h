// Cross-entropy with the next token, mean over a micro-batch, and the layers that do nothing but stand in the
// list.
#pragma once

#include "block_kernels.h"
#include "layer.h"

namespace zero1 {

/// A function in the list of layers, as frameworks have them for casts and transpositions: no parameters,
/// nothing to do here.
template <class P>
class Function : public Layer<P> {
 public:
  using typename Layer<P>::Activation;
  Activation forward(Activation input, Tape<P>&) override { return input; }
  Activation backward(Activation output_grad, Tape<P>&) override { return output_grad; }
};

/// Loss of `logits` into the tape; returns the gradient of the logits, for the way back starts where the way
/// forward ends.
template <class P>
Array<typename P::Real> cross_entropy(const Array<typename P::Real>& logits, Tape<P>& tape) {
  using Real = typename P::Real;
  const std::size_t rows = tape.batch->targets.size();
  Array<double> losses(rows);
  Array<Real> grad(logits.size());
  const Real factor = static_cast<Real>(tape.loss_factor / static_cast<double>(rows));
  Compute::run(rows, CrossEntropy<Real>{logits.data(), tape.batch->targets.data(), losses.data(), grad.data(),
                                        logits.size() / rows, factor});
  double sum = 0;
  for (const double loss : losses) sum += loss;
  tape.loss = sum / static_cast<double>(rows);
  return grad;
}

}  // namespace zero1
