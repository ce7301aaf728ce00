// What a layer is: parameters, a way forward, and a way back that consumes what the way forward kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "compute.h"
#include "linear_kernels.h"
#include "numbers.h"

namespace zero1 {

/// Sizes of the model. Tokens of a micro-batch are `batch` sequences of `sequence` tokens.
struct ModelShape {
  std::size_t words = 64;
  std::size_t hidden = 16;
  std::size_t heads = 2;
  std::size_t blocks = 2;
  std::size_t sequence = 8;

  std::size_t width() const { return hidden / heads; }
};

/// A named tensor. Where it lies is decided later (flat_group.h), so layers hold no memory of their own.
template <class P>
struct Parameter {
  std::string name;  ///< equal in every partition: "3.attention.query.weight"
  std::vector<std::size_t> shape;
  double deviation = 0;  ///< of its first values; 0 = all equal to `fill`
  double fill = 0;
  bool decays = false;      ///< weight decay: matrices yes, biases and layer norms no
  bool replicated = false;  ///< a tied copy whose first copy another stage owns: counted there
  typename P::Param* weight = nullptr;
  typename P::Param* grad = nullptr;

  std::size_t size() const {
    std::size_t product = 1;
    for (const std::size_t extent : shape) product *= extent;
    return product;
  }
};

struct MicroBatch {
  Array<std::int32_t> tokens;   ///< [batch * sequence]
  Array<std::int32_t> targets;  ///< the token after each
};

/// What one micro-batch keeps between forward and backward: a stack, for the way back is the way forward
/// reversed.
template <class P>
class Tape {
 public:
  using Activation = Array<typename P::Real>;

  void push(Activation kept) { kept_.push_back(std::move(kept)); }
  Activation pop() {
    Activation last = std::move(kept_.back());
    kept_.pop_back();
    return last;
  }
  bool empty() const { return kept_.empty(); }

  const MicroBatch* batch = nullptr;
  double loss_factor = 1;  ///< of the gradient: loss scale / micro-batches
  double loss = 0;         ///< mean over the tokens, written by the last layer

 private:
  std::vector<Activation> kept_;
};

template <class P>
class Layer {
 public:
  using Activation = Array<typename P::Real>;

  virtual ~Layer() = default;
  virtual std::vector<Parameter<P>*> parameters() { return {}; }
  virtual Activation forward(Activation input, Tape<P>& tape) = 0;
  /// Adds to the gradients of the parameters and returns that of the input.
  virtual Activation backward(Activation output_grad, Tape<P>& tape) = 0;
};

template <class T>
Array<T> copy_of(const Array<T>& from) {
  Array<T> to(from.size());
  Compute::run(from.size(), Convert<T, T>{from.data(), to.data()});
  return to;
}

}  // namespace zero1
