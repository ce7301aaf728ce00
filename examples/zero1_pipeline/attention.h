// Causal self-attention with several heads; queries and values have a bias, keys have none (softmax would not
// see it).
#pragma once

#include "block_kernels.h"
#include "linear.h"

namespace zero1 {

template <class P>
class Attention : public Layer<P> {
 public:
  using Real = typename P::Real;
  using typename Layer<P>::Activation;

  Attention(const std::string& name, const ModelShape& model, double deviation, double output_deviation)
      : shape_{model.heads, model.width(), model.sequence},
        query_(name + ".query", model.hidden, model.hidden, true, deviation),
        key_(name + ".key", model.hidden, model.hidden, false, deviation),
        value_(name + ".value", model.hidden, model.hidden, true, deviation),
        output_(name + ".output", model.hidden, model.hidden, true, output_deviation) {}

  std::vector<Parameter<P>*> parameters() override {
    std::vector<Parameter<P>*> all;
    for (Linear<P>* part : {&query_, &key_, &value_, &output_}) {
      for (Parameter<P>* parameter : part->parameters()) all.push_back(parameter);
    }
    return all;
  }

  Activation forward(Activation input, Tape<P>& tape) override {
    Activation q = query_.forward(copy_of(input), tape);
    Activation k = key_.forward(copy_of(input), tape);
    Activation v = value_.forward(std::move(input), tape);
    const std::size_t rows = q.size() / shape_.width;  // tokens x heads
    Activation probs(rows * shape_.sequence);
    Compute::run(rows, AttentionProbs<Real>{q.data(), k.data(), probs.data(), shape_});
    Activation context(q.size());
    Compute::run(context.size(), AttentionContext<Real>{probs.data(), v.data(), context.data(), shape_});
    tape.push(std::move(q));
    tape.push(std::move(k));
    tape.push(std::move(v));
    tape.push(std::move(probs));
    return output_.forward(std::move(context), tape);
  }

  Activation backward(Activation output_grad, Tape<P>& tape) override {
    const Activation dcontext = output_.backward(std::move(output_grad), tape);
    const Activation probs = tape.pop();
    const Activation v = tape.pop();
    const Activation k = tape.pop();
    const Activation q = tape.pop();
    Activation dscores(probs.size()), dq(q.size()), dk(q.size()), dv(q.size());
    Compute::run(probs.size() / shape_.sequence,
                 AttentionScoreGrad<Real>{probs.data(), v.data(), dcontext.data(), dscores.data(), shape_});
    Compute::run(dq.size(), AttentionQueryGrad<Real>{dscores.data(), k.data(), dq.data(), shape_});
    Compute::run(dk.size(), AttentionKeyGrad<Real>{dscores.data(), q.data(), dk.data(), shape_});
    Compute::run(dv.size(), AttentionKeyGrad<Real>{probs.data(), dcontext.data(), dv.data(), shape_});
    Activation sum = value_.backward(std::move(dv), tape);
    for (auto [part, grad] : {std::pair{&key_, &dk}, std::pair{&query_, &dq}}) {
      const Activation more = part->backward(std::move(*grad), tape);
      Compute::run(sum.size(), Add<Real>{sum.data(), more.data(), sum.data()});
    }
    return sum;
  }

 private:
  AttentionShape shape_;
  Linear<P> query_, key_, value_, output_;
};

}  // namespace zero1
