// One optimizer step of ZeRO stage 1: reduce gradients over the replicas, look for overflow, take the global
// norm, clip, update the part that this rank keeps, gather the rest.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "adamw.h"
#include "config.h"
#include "data_parallel_calls.h"
#include "flat_group.h"
#include "loss_scaler.h"
#include "norm_reduction.h"

namespace zero1 {

template <class P>
class Zero1Optimizer {
 public:
  Zero1Optimizer(const Config& config, const std::vector<Parameter<P>*>& parameters, const Groups& ranks)
      : config_(config), ranks_(ranks), norm_(make_norm_reduction(config.norm)), scaler_(config) {
    std::vector<ParameterGroup<P>> groups = parameter_groups(parameters);
    if (norm_->keeps_agreed_groups()) {
      std::uint64_t mask = 0;
      for (std::size_t g = 0; g < groups.size(); ++g)
        mask |= std::uint64_t{!groups[g].parameters.empty()} << g;
      const std::uint64_t agreed = agree_on_groups(ranks, mask);
      std::size_t g = 0;
      std::erase_if(groups, [&](const auto&) { return ((agreed >> g++) & 1U) == 0; });
    } else {
      drop_empty_groups(groups);
    }
    for (const ParameterGroup<P>& group : groups)
      groups_.emplace_back(group, ranks.replicas, ranks.place.replica, config.seed);
  }

  double loss_scale() const { return scaler_.scale(); }
  std::vector<FlatGroup<P>>& groups() { return groups_; }
  std::size_t state_bytes() const {
    std::size_t bytes = 0;
    for (const FlatGroup<P>& group : groups_) bytes += group.state_bytes();
    return bytes;
  }

  /// Gradients of this stage become their mean over the replicas; each rank needs its own part only.
  void reduce_gradients() {
    for (FlatGroup<P>& group : groups_) {
      // Replicas of a stage own the same groups, so this loop is equally long on all members of the data
      // group.
      if (group.part_size() == 0) continue;
      if (config_.reduce == Reduce::kAllReduce)
        allreduce_bucket(ranks_.data, group.grads().data(), group.grads().size(), kType);
      else
        reduce_scatter_bucket(ranks_.data, group.grads().data(), group.part_size(), kType);
      const auto share = static_cast<typename P::Real>(1.0 / ranks_.replicas);
      if (ranks_.replicas > 1)
        Compute::run(group.part_size(), Scale<typename P::Real, typename P::Param>{group.own_grads(), share});
    }
  }

  struct Outcome {
    bool overflow = false;
    double grad_norm = 0;  ///< before clipping; NaN after an overflow
  };

  /// All ranks skip the update, or none does.
  Outcome step() {
    bool found = false;
    for (const FlatGroup<P>& group : groups_) found = group.has_non_finite_grad() || found;
    Outcome outcome;
    outcome.overflow = has_overflow(found, ranks_);
    if (outcome.overflow) {
      outcome.grad_norm = std::numeric_limits<double>::quiet_NaN();
    } else {
      std::vector<SquaredSum> squared;
      for (const FlatGroup<P>& group : groups_)
        squared.push_back(config_.ordered ? group.exact_squared_grad_sum() : SquaredSum{group.squared_grad_sum()});
      outcome.grad_norm = std::sqrt(norm_->squared_norm(squared, ranks_)) / scaler_.scale();
      update(outcome.grad_norm);
    }
    for (FlatGroup<P>& group : groups_) group.zero_grads();
    scaler_.update(outcome.overflow);
    return outcome;
  }

 private:
  static constexpr DType kType = DTypeOf<typename P::Param>::value;

  void update(double norm) {
    ++updates_;
    const double excess = config_.clip > 0 ? (norm + 1e-6) / config_.clip : 0;
    const double scale = scaler_.scale() * (excess > 1 ? excess : 1);
    for (FlatGroup<P>& group : groups_) {
      if (group.part_size() == 0) continue;
      Compute::run(group.part_size(),
                   AdamW<typename P::Master, typename P::Param, typename P::Real>{
                       group.master().data(), group.first_moment().data(), group.second_moment().data(),
                       group.own_grads(), group.own_weights(), 1 / scale, config_.rate, config_.beta1,
                       config_.beta2, config_.epsilon, group.decays() ? config_.weight_decay : 0,
                       1 - std::pow(config_.beta1, updates_), 1 - std::pow(config_.beta2, updates_)});
      all_gather_partitions(ranks_.data, group.weights().data(), group.part_size(), kType);
    }
  }

  Config config_;
  const Groups& ranks_;
  std::unique_ptr<NormReduction> norm_;
  LossScaler scaler_;
  std::vector<FlatGroup<P>> groups_;
  int updates_ = 0;
};

}  // namespace zero1
