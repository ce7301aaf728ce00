// One transformer block: x + attention(norm(x)), then x + mlp(norm(x)).
#pragma once

#include "attention.h"
#include "layer_norm.h"
#include "linear.h"

namespace zero1 {

template <class P>
class Mlp : public Layer<P> {
 public:
  using Real = typename P::Real;
  using typename Layer<P>::Activation;

  Mlp(const std::string& name, std::size_t hidden, double deviation, double output_deviation)
      : wide_(name + ".wide", hidden, 4 * hidden, true, deviation),
        narrow_(name + ".narrow", 4 * hidden, hidden, true, output_deviation) {}

  std::vector<Parameter<P>*> parameters() override {
    std::vector<Parameter<P>*> all = wide_.parameters();
    for (Parameter<P>* parameter : narrow_.parameters()) all.push_back(parameter);
    return all;
  }

  Activation forward(Activation input, Tape<P>& tape) override {
    Activation before = wide_.forward(std::move(input), tape);
    Activation after(before.size());
    Compute::run(after.size(), Gelu<Real>{before.data(), after.data()});
    tape.push(std::move(before));
    return narrow_.forward(std::move(after), tape);
  }

  Activation backward(Activation output_grad, Tape<P>& tape) override {
    const Activation dafter = narrow_.backward(std::move(output_grad), tape);
    const Activation before = tape.pop();
    Activation dbefore(before.size());
    Compute::run(dbefore.size(), GeluGrad<Real>{before.data(), dafter.data(), dbefore.data()});
    return wide_.backward(std::move(dbefore), tape);
  }

 private:
  Linear<P> wide_, narrow_;
};

template <class P>
class TransformerBlock : public Layer<P> {
 public:
  using Real = typename P::Real;
  using typename Layer<P>::Activation;

  TransformerBlock(const std::string& name, const ModelShape& model, double deviation,
                   double output_deviation)
      : first_norm_(name + ".first_norm", model.hidden),
        attention_(name + ".attention", model, deviation, output_deviation),
        second_norm_(name + ".second_norm", model.hidden),
        mlp_(name + ".mlp", model.hidden, deviation, output_deviation) {}

  std::vector<Parameter<P>*> parameters() override {
    std::vector<Parameter<P>*> all;
    for (Layer<P>* part : std::initializer_list<Layer<P>*>{&first_norm_, &attention_, &second_norm_, &mlp_}) {
      for (Parameter<P>* parameter : part->parameters()) all.push_back(parameter);
    }
    return all;
  }

  Activation forward(Activation input, Tape<P>& tape) override {
    Activation middle = around(first_norm_, attention_, std::move(input), tape);
    return around(second_norm_, mlp_, std::move(middle), tape);
  }

  Activation backward(Activation output_grad, Tape<P>& tape) override {
    Activation middle = around_back(second_norm_, mlp_, std::move(output_grad), tape);
    return around_back(first_norm_, attention_, std::move(middle), tape);
  }

 private:
  static Activation around(Layer<P>& norm, Layer<P>& inner, Activation input, Tape<P>& tape) {
    Activation sum = inner.forward(norm.forward(copy_of(input), tape), tape);
    Compute::run(sum.size(), Add<Real>{input.data(), sum.data(), sum.data()});
    return sum;
  }
  static Activation around_back(Layer<P>& norm, Layer<P>& inner, Activation grad, Tape<P>& tape) {
    Activation sum = norm.backward(inner.backward(copy_of(grad), tape), tape);
    Compute::run(sum.size(), Add<Real>{grad.data(), sum.data(), sum.data()});
    return sum;
  }

  LayerNorm<P> first_norm_;
  Attention<P> attention_;
  LayerNorm<P> second_norm_;
  Mlp<P> mlp_;
};

}  // namespace zero1
