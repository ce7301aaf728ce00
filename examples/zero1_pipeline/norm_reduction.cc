#include "norm_reduction.h"

#include <iterator>
#include <utility>

namespace zero1 {
namespace {

// Inlined, so that a look at the call's address also shows who asked.
[[gnu::always_inline]] inline void _model_parallel_all_reduce(void* values, std::size_t count, DType type,
                                                              Sum op, const Groups& ranks) {
  ranks.model.all_reduce(values, count, type, op);
}

}  // namespace

/// Of one optimizer group, as shipped: it reduces over the replicas and over the stages, and is called once
/// for each group that this rank happens to own.
[[gnu::noinline]] SquaredSum get_grad_norm_direct(SquaredSum squared, const Groups& ranks) {
  ranks.data.all_reduce(squared.data(), squared.size(), DType::kF64, Sum::kSum);
  _model_parallel_all_reduce(squared.data(), squared.size(), DType::kF64, Sum::kSum, ranks);
  return squared;
}

/// Of everything: two reductions, whatever this rank owns.
[[gnu::noinline]] SquaredSum get_global_norm_fused(SquaredSum squared, const Groups& ranks) {
  ranks.data.all_reduce(squared.data(), squared.size(), DType::kF64, Sum::kSum);
  _model_parallel_all_reduce(squared.data(), squared.size(), DType::kF64, Sum::kSum, ranks);
  return squared;
}

/// Of each of the groups that were agreed on: two reductions of that many elements, an empty group bringing a
/// zero.
[[gnu::noinline]] std::vector<double> get_norms_of_agreed_groups(std::vector<double> squared,
                                                                 const Groups& ranks) {
  ranks.data.all_reduce(squared.data(), squared.size(), DType::kF64, Sum::kSum);
  _model_parallel_all_reduce(squared.data(), squared.size(), DType::kF64, Sum::kSum, ranks);
  return squared;
}

[[gnu::noinline]] bool has_overflow(bool found_here, const Groups& ranks) {
  std::uint8_t overflow = found_here ? 1 : 0;
  ranks.data.all_reduce(&overflow, 1, DType::kU8, Sum::kMax);
  _model_parallel_all_reduce(&overflow, 1, DType::kU8, Sum::kMax, ranks);
  return overflow != 0;
}

[[gnu::noinline]] std::uint64_t agree_on_groups(const Groups& ranks, std::uint64_t mask) {
  std::vector<std::int64_t> has(64);
  for (std::size_t g = 0; g < has.size(); ++g) has[g] = static_cast<std::int64_t>((mask >> g) & 1U);
  _model_parallel_all_reduce(has.data(), has.size(), DType::kI64, Sum::kMax, ranks);
  std::uint64_t agreed = 0;
  for (std::size_t g = 0; g < has.size(); ++g) agreed |= static_cast<std::uint64_t>(has[g] != 0) << g;
  return agreed;
}

namespace {

void add_to(SquaredSum& total, const SquaredSum& part) {
  total.resize(part.size());
  for (std::size_t i = 0; i < part.size(); ++i) total[i] += part[i];
}

class PerGroup : public NormReduction {
 public:
  double squared_norm(const std::vector<SquaredSum>& squared, const Groups& ranks) const override {
    SquaredSum total;
    for (const SquaredSum& group : squared)
      add_to(total, get_grad_norm_direct(group, ranks));  // the fault: see norm_reduction.h
    return ExactSum::value_of(total);
  }
};

class Fused : public NormReduction {
 public:
  double squared_norm(const std::vector<SquaredSum>& squared, const Groups& ranks) const override {
    SquaredSum here;
    for (const SquaredSum& group : squared) add_to(here, group);
    return ExactSum::value_of(get_global_norm_fused(std::move(here), ranks));
  }
};

class AgreedGroups : public NormReduction {
 public:
  double squared_norm(const std::vector<SquaredSum>& squared, const Groups& ranks) const override {
    SquaredSum flat;
    for (const SquaredSum& group : squared) flat.insert(flat.end(), group.begin(), group.end());
    flat = get_norms_of_agreed_groups(std::move(flat), ranks);
    SquaredSum total;
    for (auto begin = flat.begin(); begin != flat.end(); begin += std::ssize(squared[0]))
      add_to(total, SquaredSum(begin, begin + std::ssize(squared[0])));
    return ExactSum::value_of(total);
  }
  bool keeps_agreed_groups() const override { return true; }
};

}  // namespace

std::unique_ptr<NormReduction> make_norm_reduction(Norm norm) {
  switch (norm) {
    case Norm::kPerGroup:
      return std::make_unique<PerGroup>();
    case Norm::kFused:
      return std::make_unique<Fused>();
    case Norm::kAgreedGroups:
      return std::make_unique<AgreedGroups>();
  }
  return nullptr;
}

}  // namespace zero1
