// Layer norm over the hidden dimension. Its gain and bias are what a stage of embeddings alone does not have.
#pragma once

#include "block_kernels.h"
#include "layer.h"

namespace zero1 {

template <class P>
class LayerNorm : public Layer<P> {
 public:
  using Real = typename P::Real;
  using Param = typename P::Param;
  using typename Layer<P>::Activation;

  LayerNorm(const std::string& name, std::size_t hidden) : hidden_(hidden) {
    gain_.name = name + ".gain";
    gain_.shape = {hidden};
    gain_.fill = 1;
    bias_.name = name + ".bias";
    bias_.shape = {hidden};
  }

  std::vector<Parameter<P>*> parameters() override { return {&gain_, &bias_}; }

  Activation forward(Activation input, Tape<P>& tape) override {
    const std::size_t rows = input.size() / hidden_;
    Activation output(input.size()), mean(rows), inverse(rows);
    Compute::run(rows, LayerNormForward<Real, Param>{input.data(), gain_.weight, bias_.weight, output.data(),
                                                     mean.data(), inverse.data(), hidden_});
    tape.push(std::move(input));
    tape.push(std::move(mean));
    tape.push(std::move(inverse));
    return output;
  }

  Activation backward(Activation output_grad, Tape<P>& tape) override {
    const Activation inverse = tape.pop();
    const Activation mean = tape.pop();
    const Activation input = tape.pop();
    const std::size_t rows = mean.size();
    Activation input_grad(input.size());
    Compute::run(
        rows, LayerNormInputGrad<Real, Param>{output_grad.data(), input.data(), mean.data(), inverse.data(),
                                              gain_.weight, input_grad.data(), hidden_});
    Compute::run(hidden_, LayerNormGainGrad<Real, Param>{output_grad.data(), input.data(), mean.data(),
                                                         inverse.data(), gain_.grad, rows, hidden_});
    Compute::run(hidden_, BiasGrad<Real, Param>{output_grad.data(), bias_.grad, rows, hidden_});
    return input_grad;
  }

 private:
  std::size_t hidden_;
  Parameter<P> gain_, bias_;
};

}  // namespace zero1
