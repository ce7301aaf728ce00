// What crosses torch's C++ interface, as far as the recorder looks into it. No header of torch is used: everything is a pointer to something
// that only torch knows, but for std::vector (three pointers in libstdc++) and at::Tensor (one pointer).
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::shim::torch {

/// at::Tensor: a pointer to its implementation.
struct Tensor {
  const void* implementation;
};

/// std::vector<T> of libstdc++.
template <class T>
struct Vector {
  const T* first;
  const T* last;
  const T* capacity_end;

  std::size_t size() const noexcept { return static_cast<std::size_t>(last - first); }
  const T* begin() const noexcept { return first; }
  const T* end() const noexcept { return last; }
};
using Tensors = Vector<Tensor>;
using TensorLists = Vector<Tensors>;
using Sizes = Vector<std::int64_t>;

/// c10::intrusive_ptr<c10d::Work>. It has a destructor, so that a function returns it where the caller says, as the original does.
struct WorkPointer {
  WorkPointer() = delete;
  WorkPointer(const WorkPointer&);  // never defined: must be constructed in place
  WorkPointer& operator=(const WorkPointer&) = delete;
  ~WorkPointer() {}

  const void* work;
};

}  // namespace lockstep::shim::torch
