// Where loops run and arrays lie: on the host, or on a GPU in a build with LOCKSTEP_WITH_CUDA. Knows no
// communication.
//
// A computation is a functor over an index (kernels.h): `run` calls it for 0..n-1. So host and GPU share
// every formula.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

#ifdef ZERO1_CUDA
#include "cuda_compute.cuh"
#endif

namespace zero1 {

struct HostCompute {
  static constexpr const char* kName = "host";
  static void* allocate(std::size_t bytes) {
    void* memory = std::calloc(1, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  static void release(void* memory) noexcept { std::free(memory); }
  template <class Functor>
  static void run(std::size_t n, const Functor& functor) {
    for (std::size_t i = 0; i < n; ++i) functor(i);
  }
};

#ifdef ZERO1_CUDA
using Compute = CudaCompute;
#else
using Compute = HostCompute;
#endif

/// A flat array, zero at first, in memory that Compute and the host can both reach. Moves, never copies by
/// accident.
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  explicit Array(std::size_t size) : size_(size) {
    if (size > 0) data_ = static_cast<T*>(Compute::allocate(size * sizeof(T)));
  }
  Array(Array&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Array() { Compute::release(data_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace zero1
