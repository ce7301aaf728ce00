// A linear map with or without bias.
#pragma once

#include <cmath>

#include "layer.h"

namespace zero1 {

template <class P>
class Linear : public Layer<P> {
 public:
  using Real = typename P::Real;
  using Param = typename P::Param;
  using typename Layer<P>::Activation;

  Linear(const std::string& name, std::size_t in, std::size_t out, bool has_bias, double deviation)
      : in_(in), out_(out), has_bias_(has_bias) {
    weight_.name = name + ".weight";
    weight_.shape = {out, in};
    weight_.deviation = deviation;
    weight_.decays = true;
    bias_.name = name + ".bias";
    bias_.shape = {out};
  }

  std::vector<Parameter<P>*> parameters() override {
    if (has_bias_) return {&weight_, &bias_};
    return {&weight_};
  }

  Activation forward(Activation input, Tape<P>& tape) override {
    const std::size_t rows = input.size() / in_;
    Activation output(rows * out_);
    Compute::run(output.size(),
                 LinearForward<Real, Param>{input.data(), weight_.weight, has_bias_ ? bias_.weight : nullptr,
                                            output.data(), in_, out_});
    tape.push(std::move(input));
    return output;
  }

  Activation backward(Activation output_grad, Tape<P>& tape) override {
    const Activation input = tape.pop();
    const std::size_t rows = input.size() / in_;
    Compute::run(weight_.size(), LinearWeightGrad<Real, Param>{output_grad.data(), input.data(), weight_.grad,
                                                               rows, in_, out_});
    if (has_bias_) Compute::run(out_, BiasGrad<Real, Param>{output_grad.data(), bias_.grad, rows, out_});
    Activation input_grad(input.size());
    Compute::run(input_grad.size(), LinearInputGrad<Real, Param>{output_grad.data(), weight_.weight,
                                                                 input_grad.data(), in_, out_});
    return input_grad;
  }

 private:
  std::size_t in_, out_;
  bool has_bias_;
  Parameter<P> weight_, bias_;
};

}  // namespace zero1
