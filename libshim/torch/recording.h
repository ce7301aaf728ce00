// What is recorded of a call of a torch backend: the members that rows of functions.def name.
#pragma once

#include "call_scope.h"
#include "torch/native.h"
#include "torch/options.h"
#include "torch/scope.h"
#include "torch/tensors.h"

namespace lockstep::shim::torch {

/// What a new file says first of torch; once per file. Any thread. Cold but for the check.
void begin_file() noexcept;
/// Version of torch, for every file of this process; a text that stays.
void set_torch_version(const char* version) noexcept;

/// Says in the trace, now or when there is one, that not all `of` torch is recorded, and why: `what` and `which`. Readers look for the words
/// "of torch are not all recorded". Cold.
void note_missing(const char* of, const char* what, const char* which) noexcept;

/// A list of the one tensor.
inline Tensors one(const Tensor* tensor) noexcept { return Tensors{tensor, tensor + 1, tensor + 1}; }

class BackendCall {
 public:
  BackendCall(const void* frame, const void* caller, const void* backend) noexcept;

  bool active() const noexcept { return scope_.active(); }

  void barrier() noexcept;
  void monitored_barrier() noexcept;
  void collective(OpKind kind, const Tensors& tensors) noexcept;
  void rooted(OpKind kind, const Tensors& tensors, Struct which, const void* options) noexcept;
  void reduction(OpKind kind, const Tensors& tensors, Struct which, const void* options) noexcept;
  void rooted_reduction(const Tensors& tensors, const void* options) noexcept;
  void all_to_all(const Tensor& output, const Tensor& input, const Sizes& output_splits, const Sizes& input_splits) noexcept;
  void all_to_all(const Tensors& outputs, const Tensors& inputs) noexcept;
  void message(OpKind kind, const Tensors& tensors, int peer, int tag) noexcept;

  /// It came back with this Work; null where there is none.
  void finish(const void* work) noexcept;

 private:
  void agree(const Tensors& tensors) noexcept;
  void issue() noexcept;
  void enter() noexcept;
  void use_root(Struct which, const void* options) noexcept;
  void use_reduction(Struct which, const void* options) noexcept;
  template <class CountOf>
  trace::CountsRecord counts(std::uint32_t members, std::uint8_t side, const Meaning* type, const CountOf& count_of) noexcept;
  void enter_counts(const trace::CountsRecord& sent, const trace::CountsRecord& received) noexcept;

  SiteOfCall site_;
  CallScope scope_;
  const void* frame_;
  const void* backend_;
  std::uint32_t request_ = 0;
  Call call_;
};

/// Most requests that one wait can name.
inline constexpr std::uint32_t kMostWaited = 96;

/// A wait for requests that were issued before.
class WaitCall {
 public:
  WaitCall(const void* frame, const void* caller) noexcept;
  /// Work::wait: for the request that the Work was returned for.
  void wait_for(const void* work) noexcept;
  /// `count` may be more than kMostWaited: the others are not named.
  void wait_for(const std::uint32_t* requests, std::uint32_t count) noexcept;
  void finish() noexcept;

 private:
  SiteOfCall site_;
  CallScope scope_;
  const void* frame_;
};

}  // namespace lockstep::shim::torch
