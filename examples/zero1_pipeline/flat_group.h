// One optimizer group laid out flat: weights and gradients in one piece each, padded so that every replica
// keeps an equal part, and of that part the master weights and moments of AdamW. This is the partition of
// ZeRO stage 1.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "exact_sum.h"
#include "first_values.h"
#include "linear_kernels.h"
#include "parameter_groups.h"

namespace zero1 {

template <class P>
class FlatGroup {
 public:
  using Param = typename P::Param;
  using Real = typename P::Real;
  using Master = typename P::Master;

  /// Gives the parameters of `group` their memory and their first values. This rank keeps part `replica` of
  /// `replicas`.
  FlatGroup(const ParameterGroup<P>& group, int replicas, int replica, std::uint64_t seed)
      : name_(group.name), decays_(group.decays), parameters_(group.parameters) {
    for (const Parameter<P>* parameter : parameters_) elements_ += parameter->size();
    part_size_ = (elements_ + static_cast<std::size_t>(replicas) - 1) / static_cast<std::size_t>(replicas);
    part_begin_ = part_size_ * static_cast<std::size_t>(replica);
    weights_ = Array<Param>(part_size_ * static_cast<std::size_t>(replicas));
    grads_ = Array<Param>(weights_.size());
    master_ = Array<Master>(part_size_);
    first_moment_ = Array<Master>(part_size_);
    second_moment_ = Array<Master>(part_size_);
    std::size_t offset = 0;
    for (Parameter<P>* parameter : parameters_) {
      parameter->weight = weights_.data() + offset;
      parameter->grad = grads_.data() + offset;
      fill(*parameter, offset, seed);
      if (!parameter->replicated) count_within_part(offset, offset + parameter->size());
      offset += parameter->size();
    }
  }

  const std::string& name() const { return name_; }
  bool decays() const { return decays_; }
  const std::vector<Parameter<P>*>& parameters() const { return parameters_; }
  std::size_t elements() const { return elements_; }    ///< without padding
  std::size_t part_size() const { return part_size_; }  ///< elements that each replica keeps
  Array<Param>& weights() { return weights_; }
  Array<Param>& grads() { return grads_; }
  Array<Master>& master() { return master_; }
  Array<Master>& first_moment() { return first_moment_; }
  Array<Master>& second_moment() { return second_moment_; }
  Param* own_weights() { return weights_.data() + part_begin_; }
  Param* own_grads() { return grads_.data() + part_begin_; }
  std::size_t state_bytes() const { return 3 * part_size_ * sizeof(Master); }

  /// Of this rank's part, tied copies left out, padding (always zero) as well.
  double squared_grad_sum() const {
    double total = 0;
    for (const auto& [begin, end] : counted_) {
      const std::size_t size = end - begin;
      Array<double> sums((size + kChunk - 1) / kChunk);
      Compute::run(sums.size(), SquaredSums<Param, Real>{grads_.data() + begin, size, kChunk, sums.data()});
      for (const double sum : sums) total += sum;
    }
    return total;
  }

  /// The same without rounding, on the host.
  SquaredSum exact_squared_grad_sum() const {
    ExactSum total;
    for (const auto& [begin, end] : counted_) {
      for (std::size_t i = begin; i < end; ++i)
        total.add_square(static_cast<double>(static_cast<Real>(grads_.data()[i])));
    }
    return total.digits();
  }

  bool has_non_finite_grad() const {
    Array<std::uint8_t> found((part_size_ + kChunk - 1) / kChunk);
    Compute::run(found.size(),
                 NonFinite<Param, Real>{grads_.data() + part_begin_, part_size_, kChunk, found.data()});
    return std::any_of(found.begin(), found.end(), [](std::uint8_t any) { return any != 0; });
  }

  void zero_grads() { Compute::run(grads_.size(), Zero<Param>{grads_.data()}); }

 private:
  static constexpr std::size_t kChunk = 4096;

  void fill(const Parameter<P>& parameter, std::size_t offset, std::uint64_t seed) {
    const std::vector<double> values = first_values(parameter, seed);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t at = offset + i;
      if (at >= part_begin_ && at < part_begin_ + part_size_)
        master_[at - part_begin_] = static_cast<Master>(values[i]);
      weights_[at] = static_cast<Param>(static_cast<Master>(values[i]));
    }
  }

  void count_within_part(std::size_t begin, std::size_t end) {
    begin = std::max(begin, part_begin_);
    end = std::min(end, part_begin_ + part_size_);
    if (begin < end) counted_.emplace_back(begin, end);
  }

  std::string name_;
  bool decays_;
  std::vector<Parameter<P>*> parameters_;
  std::size_t elements_ = 0, part_size_ = 0, part_begin_ = 0;
  Array<Param> weights_, grads_;
  Array<Master> master_, first_moment_, second_moment_;
  std::vector<std::pair<std::size_t, std::size_t>> counted_;  ///< of this rank's part, as places in grads_
};

}  // namespace zero1
