// Formulas of layer norm, attention, GELU and cross-entropy, forward and backward, one functor each as in
// linear_kernels.h.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "linear_kernels.h"
#include "numbers.h"

namespace zero1 {

/// One row per index; keeps mean and 1/deviation for the way back.
template <class Real, class Param>
struct LayerNormForward {
  const Real* x;
  const Param* gain;
  const Param* bias;
  Real* y;
  Real* mean;
  Real* inverse;
  std::size_t hidden;
  ZERO1_HOST_DEVICE void operator()(std::size_t row) const {
    const Real* in = x + row * hidden;
    Real sum = 0;
    for (std::size_t h = 0; h < hidden; ++h) sum += in[h];
    const Real middle = sum / static_cast<Real>(hidden);
    Real squares = 0;
    for (std::size_t h = 0; h < hidden; ++h) squares += (in[h] - middle) * (in[h] - middle);
    const Real scale = Real(1) / std::sqrt(squares / static_cast<Real>(hidden) + Real(1e-5));
    for (std::size_t h = 0; h < hidden; ++h)
      y[row * hidden + h] =
          (in[h] - middle) * scale * static_cast<Real>(gain[h]) + static_cast<Real>(bias[h]);
    mean[row] = middle;
    inverse[row] = scale;
  }
};

template <class Real, class Param>
struct LayerNormInputGrad {
  const Real* dy;
  const Real* x;
  const Real* mean;
  const Real* inverse;
  const Param* gain;
  Real* dx;
  std::size_t hidden;
  ZERO1_HOST_DEVICE void operator()(std::size_t row) const {
    Real sum = 0;
    Real weighted = 0;
    for (std::size_t h = 0; h < hidden; ++h) {
      const std::size_t i = row * hidden + h;
      const Real g = dy[i] * static_cast<Real>(gain[h]);
      sum += g;
      weighted += g * (x[i] - mean[row]) * inverse[row];
    }
    const Real n = static_cast<Real>(hidden);
    for (std::size_t h = 0; h < hidden; ++h) {
      const std::size_t i = row * hidden + h;
      const Real normal = (x[i] - mean[row]) * inverse[row];
      dx[i] = inverse[row] * (dy[i] * static_cast<Real>(gain[h]) - sum / n - normal * weighted / n);
    }
  }
};

template <class Real, class Param>
struct LayerNormGainGrad {
  const Real* dy;
  const Real* x;
  const Real* mean;
  const Real* inverse;
  Param* grad;
  std::size_t rows, hidden;
  ZERO1_HOST_DEVICE void operator()(std::size_t h) const {
    Real sum = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t i = row * hidden + h;
      sum += dy[i] * (x[i] - mean[row]) * inverse[row];
    }
    add_to(grad[h], sum);
  }
};

/// Sizes that attention needs: token t = batch * sequence + place, channel = head * width + c.
struct AttentionShape {
  std::size_t heads, width, sequence;
  ZERO1_HOST_DEVICE std::size_t hidden() const { return heads * width; }
};

/// probs[(token * heads + head) * sequence + key] for keys up to the token's own place, zero after it. One
/// row per index.
template <class Real>
struct AttentionProbs {
  const Real* q;
  const Real* k;
  Real* probs;
  AttentionShape shape;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t token = i / shape.heads;
    const std::size_t head = i % shape.heads;
    const std::size_t place = token % shape.sequence;
    const std::size_t first = token - place;
    const Real* query = q + token * shape.hidden() + head * shape.width;
    Real* row = probs + i * shape.sequence;
    const Real scale = Real(1) / std::sqrt(static_cast<Real>(shape.width));
    Real highest = 0;
    for (std::size_t key = 0; key <= place; ++key) {
      const Real* other = k + (first + key) * shape.hidden() + head * shape.width;
      Real sum = 0;
      for (std::size_t c = 0; c < shape.width; ++c) sum += query[c] * other[c];
      row[key] = sum * scale;
      highest = key == 0 || row[key] > highest ? row[key] : highest;
    }
    Real total = 0;
    for (std::size_t key = 0; key <= place; ++key) {
      row[key] = std::exp(row[key] - highest);
      total += row[key];
    }
    for (std::size_t key = 0; key < shape.sequence; ++key)
      row[key] = key <= place ? row[key] / total : Real(0);
  }
};

/// context = probs v. One element per index.
template <class Real>
struct AttentionContext {
  const Real* probs;
  const Real* v;
  Real* context;
  AttentionShape shape;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t token = i / shape.hidden();
    const std::size_t channel = i % shape.hidden();
    const std::size_t place = token % shape.sequence;
    const Real* row = probs + (token * shape.heads + channel / shape.width) * shape.sequence;
    Real sum = 0;
    for (std::size_t key = 0; key <= place; ++key)
      sum += row[key] * v[(token - place + key) * shape.hidden() + channel];
    context[i] = sum;
  }
};

/// Gradient of the scores before softmax, scaled for q and k. One row per index.
template <class Real>
struct AttentionScoreGrad {
  const Real* probs;
  const Real* v;
  const Real* dcontext;
  Real* dscores;
  AttentionShape shape;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t token = i / shape.heads;
    const std::size_t head = i % shape.heads;
    const std::size_t place = token % shape.sequence;
    const std::size_t offset = head * shape.width;
    const Real* row = probs + i * shape.sequence;
    Real* out = dscores + i * shape.sequence;
    Real weighted = 0;
    for (std::size_t key = 0; key <= place; ++key) {
      Real sum = 0;
      for (std::size_t c = 0; c < shape.width; ++c)
        sum += dcontext[token * shape.hidden() + offset + c] *
               v[(token - place + key) * shape.hidden() + offset + c];
      out[key] = sum;
      weighted += sum * row[key];
    }
    const Real scale = Real(1) / std::sqrt(static_cast<Real>(shape.width));
    for (std::size_t key = 0; key <= place; ++key) out[key] = row[key] * (out[key] - weighted) * scale;
  }
};

template <class Real>
struct AttentionQueryGrad {
  const Real* dscores;
  const Real* k;
  Real* dq;
  AttentionShape shape;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t token = i / shape.hidden();
    const std::size_t channel = i % shape.hidden();
    const std::size_t place = token % shape.sequence;
    const Real* row = dscores + (token * shape.heads + channel / shape.width) * shape.sequence;
    Real sum = 0;
    for (std::size_t key = 0; key <= place; ++key)
      sum += row[key] * k[(token - place + key) * shape.hidden() + channel];
    dq[i] = sum;
  }
};

/// grad = rows^T other over the queries that saw this key: with dscores and q the gradient of k, with probs
/// and dcontext that of v.
template <class Real>
struct AttentionKeyGrad {
  const Real* rows;
  const Real* other;
  Real* grad;
  AttentionShape shape;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t token = i / shape.hidden();
    const std::size_t channel = i % shape.hidden();
    const std::size_t place = token % shape.sequence;
    Real sum = 0;
    for (std::size_t query = place; query < shape.sequence; ++query) {
      const std::size_t from = token - place + query;
      sum += rows[(from * shape.heads + channel / shape.width) * shape.sequence + place] *
             other[from * shape.hidden() + channel];
    }
    grad[i] = sum;
  }
};

/// The tanh form of GELU.
template <class Real>
struct Gelu {
  const Real* x;
  Real* y;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const Real inner = Real(0.7978845608028654) * (x[i] + Real(0.044715) * x[i] * x[i] * x[i]);
    y[i] = Real(0.5) * x[i] * (Real(1) + std::tanh(inner));
  }
};

template <class Real>
struct GeluGrad {
  const Real* x;
  const Real* dy;
  Real* dx;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const Real v = x[i];
    const Real t = std::tanh(Real(0.7978845608028654) * (v + Real(0.044715) * v * v * v));
    const Real slope = Real(0.7978845608028654) * (Real(1) + Real(0.134145) * v * v);
    dx[i] = dy[i] * (Real(0.5) * (Real(1) + t) + Real(0.5) * v * (Real(1) - t * t) * slope);
  }
};

/// Loss of each row, and the gradient of `factor` times their sum. One row per index.
template <class Real>
struct CrossEntropy {
  const Real* logits;
  const std::int32_t* targets;
  double* losses;
  Real* grad;
  std::size_t words;
  Real factor;
  ZERO1_HOST_DEVICE void operator()(std::size_t row) const {
    const Real* in = logits + row * words;
    Real highest = in[0];
    for (std::size_t w = 1; w < words; ++w) highest = in[w] > highest ? in[w] : highest;
    Real total = 0;
    for (std::size_t w = 0; w < words; ++w) total += std::exp(in[w] - highest);
    const auto target = static_cast<std::size_t>(targets[row]);
    losses[row] = static_cast<double>(std::log(total) + highest - in[target]);
    for (std::size_t w = 0; w < words; ++w) {
      const Real p = std::exp(in[w] - highest) / total;
      grad[row * words + w] = (p - (w == target ? Real(1) : Real(0))) * factor;
    }
  }
};

}  // namespace zero1
