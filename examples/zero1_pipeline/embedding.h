// Token and position embedding, and its second use as the output projection (tied: the same weights, or a
// copy of them on another stage whose gradients are summed with the first's).
#pragma once

#include "layer.h"

namespace zero1 {

template <class P>
class Embedding : public Layer<P> {
 public:
  using Real = typename P::Real;
  using Param = typename P::Param;
  using typename Layer<P>::Activation;

  Embedding(const std::string& name, const ModelShape& model) : shape_(model) {
    word_.name = name + ".word";
    word_.shape = {model.words, model.hidden};
    position_.name = name + ".position";
    position_.shape = {model.sequence, model.hidden};
    for (Parameter<P>* parameter : {&word_, &position_}) {
      parameter->deviation = 0.1;
      parameter->decays = true;
    }
  }

  std::vector<Parameter<P>*> parameters() override { return {&word_, &position_}; }

  Activation forward(Activation, Tape<P>& tape) override {
    const Array<std::int32_t>& tokens = tape.batch->tokens;
    Activation output(tokens.size() * shape_.hidden);
    Compute::run(output.size(), EmbeddingForward<Real, Param>{tokens.data(), word_.weight, position_.weight,
                                                              output.data(), shape_.hidden, shape_.sequence});
    return output;
  }

  Activation backward(Activation output_grad, Tape<P>& tape) override {
    const Array<std::int32_t>& tokens = tape.batch->tokens;
    Compute::run(word_.size(), WordGrad<Real, Param>{tokens.data(), output_grad.data(), word_.grad,
                                                     tokens.size(), shape_.hidden});
    Compute::run(position_.size(), PositionGrad<Real, Param>{output_grad.data(), position_.grad,
                                                             tokens.size(), shape_.hidden, shape_.sequence});
    return {};  // tokens have no gradient
  }

  /// The second use: logits[token][word] = x . word embedding.
  Activation project(Activation input, Tape<P>& tape) {
    Activation logits(input.size() / shape_.hidden * shape_.words);
    Compute::run(logits.size(), LinearForward<Real, Param>{input.data(), word_.weight, nullptr, logits.data(),
                                                           shape_.hidden, shape_.words});
    tape.push(std::move(input));
    return logits;
  }
  Activation project_back(Activation logits_grad, Tape<P>& tape) {
    const Activation input = tape.pop();
    Compute::run(word_.size(),
                 LinearWeightGrad<Real, Param>{logits_grad.data(), input.data(), word_.grad,
                                               input.size() / shape_.hidden, shape_.hidden, shape_.words});
    Activation input_grad(input.size());
    Compute::run(input_grad.size(),
                 LinearInputGrad<Real, Param>{logits_grad.data(), word_.weight, input_grad.data(),
                                              shape_.hidden, shape_.words});
    return input_grad;
  }

 private:
  ModelShape shape_;
  Parameter<P> word_, position_;
};

/// The output projection as a layer of its own. It shares the embedding with the layer that it is tied to
/// where both are on one stage, and owns a copy elsewhere.
template <class P>
class TiedProjection : public Layer<P> {
 public:
  using typename Layer<P>::Activation;
  explicit TiedProjection(std::shared_ptr<Embedding<P>> embedding) : embedding_(std::move(embedding)) {}
  std::vector<Parameter<P>*> parameters() override { return embedding_->parameters(); }
  Activation forward(Activation input, Tape<P>& tape) override {
    return embedding_->project(std::move(input), tape);
  }
  Activation backward(Activation output_grad, Tape<P>& tape) override {
    return embedding_->project_back(std::move(output_grad), tape);
  }

 private:
  std::shared_ptr<Embedding<P>> embedding_;
};

template <class P>
class TiedEmbedding : public Layer<P> {
 public:
  using typename Layer<P>::Activation;
  explicit TiedEmbedding(std::shared_ptr<Embedding<P>> embedding) : embedding_(std::move(embedding)) {}
  std::vector<Parameter<P>*> parameters() override { return embedding_->parameters(); }
  Activation forward(Activation input, Tape<P>& tape) override {
    return embedding_->forward(std::move(input), tape);
  }
  Activation backward(Activation output_grad, Tape<P>& tape) override {
    return embedding_->backward(std::move(output_grad), tape);
  }

 private:
  std::shared_ptr<Embedding<P>> embedding_;
};

}  // namespace zero1
