// Formulas of linear maps, embeddings and sums, one functor each: operator()(i) writes element i of its
// result. Row-major: x[row * in + i], w[o * in + i], y[row * out + o]. Weight gradients are added to what is
// there, with one rounding.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "numbers.h"

namespace zero1 {

/// Adds in `Real`, rounds once to what gradients are stored in.
template <class Real, class Param>
ZERO1_HOST_DEVICE inline void add_to(Param& stored, Real sum) {
  stored = static_cast<Param>(static_cast<Real>(stored) + sum);
}

/// y = x w^T + b; `bias` may be null.
template <class Real, class Param>
struct LinearForward {
  const Real* x;
  const Param* weight;
  const Param* bias;
  Real* y;
  std::size_t in, out;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const Real* row = x + i / out * in;
    const Param* column = weight + i % out * in;
    Real sums[4] = {0, 0, 0, 0};  // four chains of additions, so that a CPU need not wait for each
    std::size_t k = 0;
    for (; k + 4 <= in; k += 4) {
      for (std::size_t lane = 0; lane < 4; ++lane)
        sums[lane] += row[k + lane] * static_cast<Real>(column[k + lane]);
    }
    for (; k < in; ++k) sums[0] += row[k] * static_cast<Real>(column[k]);
    const Real sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    y[i] = bias == nullptr ? sum : sum + static_cast<Real>(bias[i % out]);
  }
};

/// dx = dy w
template <class Real, class Param>
struct LinearInputGrad {
  const Real* dy;
  const Param* weight;
  Real* dx;
  std::size_t in, out;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const Real* row = dy + i / in * out;
    Real sum = 0;
    for (std::size_t o = 0; o < out; ++o) sum += row[o] * static_cast<Real>(weight[o * in + i % in]);
    dx[i] = sum;
  }
};

/// dw += dy^T x
template <class Real, class Param>
struct LinearWeightGrad {
  const Real* dy;
  const Real* x;
  Param* dw;
  std::size_t rows, in, out;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    Real sum = 0;
    for (std::size_t row = 0; row < rows; ++row) sum += dy[row * out + i / in] * x[row * in + i % in];
    add_to(dw[i], sum);
  }
};

/// db += column sums of dy
template <class Real, class Param>
struct BiasGrad {
  const Real* dy;
  Param* db;
  std::size_t rows, out;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    Real sum = 0;
    for (std::size_t row = 0; row < rows; ++row) sum += dy[row * out + i];
    add_to(db[i], sum);
  }
};

/// y[token] = word[id of token] + position[place in its sequence]
template <class Real, class Param>
struct EmbeddingForward {
  const std::int32_t* tokens;
  const Param* word;
  const Param* position;
  Real* y;
  std::size_t hidden, sequence;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t token = i / hidden;
    const std::size_t h = i % hidden;
    y[i] = static_cast<Real>(word[static_cast<std::size_t>(tokens[token]) * hidden + h]) +
           static_cast<Real>(position[token % sequence * hidden + h]);
  }
};

/// Gathers by word instead of scattering by token: no two indices write one place, and the order of additions
/// is fixed.
template <class Real, class Param>
struct WordGrad {
  const std::int32_t* tokens;
  const Real* dy;
  Param* grad;
  std::size_t rows, hidden;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    const auto word = static_cast<std::int32_t>(i / hidden);
    Real sum = 0;
    bool seen = false;
    for (std::size_t row = 0; row < rows; ++row) {
      if (tokens[row] != word) continue;
      sum += dy[row * hidden + i % hidden];
      seen = true;
    }
    if (seen) add_to(grad[i], sum);
  }
};

template <class Real, class Param>
struct PositionGrad {
  const Real* dy;
  Param* grad;
  std::size_t rows, hidden, sequence;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    Real sum = 0;
    for (std::size_t row = i / hidden; row < rows; row += sequence) sum += dy[row * hidden + i % hidden];
    add_to(grad[i], sum);
  }
};

template <class Real>
struct Add {
  const Real* a;
  const Real* b;
  Real* sum;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const { sum[i] = a[i] + b[i]; }
};

/// values *= factor, for what is stored in `Param`
template <class Real, class Param>
struct Scale {
  Param* values;
  Real factor;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const {
    values[i] = static_cast<Param>(static_cast<Real>(values[i]) * factor);
  }
};

template <class T>
struct Zero {
  T* values;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const { values[i] = T(0.F); }
};

template <class From, class To>
struct Convert {
  const From* from;
  To* to;
  ZERO1_HOST_DEVICE void operator()(std::size_t i) const { to[i] = static_cast<To>(from[i]); }
};

/// sums[c] = sum of squares of chunk c, in double whatever the values are
template <class Param, class Wide>
struct SquaredSums {
  const Param* values;
  std::size_t size, chunk;
  double* sums;
  ZERO1_HOST_DEVICE void operator()(std::size_t c) const {
    const std::size_t end = (c + 1) * chunk < size ? (c + 1) * chunk : size;
    double sum = 0;
    for (std::size_t i = c * chunk; i < end; ++i) {
      const double value = static_cast<double>(static_cast<Wide>(values[i]));
      sum += value * value;
    }
    sums[c] = sum;
  }
};

/// found[c] = 1 where chunk c holds an infinity or a NaN
template <class Param, class Wide>
struct NonFinite {
  const Param* values;
  std::size_t size, chunk;
  std::uint8_t* found;
  ZERO1_HOST_DEVICE void operator()(std::size_t c) const {
    const std::size_t end = (c + 1) * chunk < size ? (c + 1) * chunk : size;
    std::uint8_t any = 0;
    for (std::size_t i = c * chunk; i < end; ++i) {
      const Wide value = static_cast<Wide>(values[i]);
      if (!(value - value == 0)) any = 1;  // infinity minus itself is a NaN, as a NaN is
    }
    found[c] = any;
  }
};

}  // namespace zero1
