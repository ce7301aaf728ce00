// Communication over NCCL, from and to memory that the GPU can reach (cuda_compute.cuh), or host memory where
// a stand-in for NCCL takes it. Ranks find each other without MPI: rank and size from the launcher's
// environment, NCCL's id through a file.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "numbers.h"
#include "ordered_sum.h"

namespace zero1 {

// Part of whoever calls, for debuggers and for reports: they show the caller's name instead.
#define ZERO1_INLINE [[gnu::always_inline, gnu::artificial]] inline

/// Rank and number of ranks from RANK/WORLD_SIZE, Open MPI's, PMI's or SLURM's variables; 0 of 1 without any.
std::pair<int, int> rank_and_size_from_environment();

/// The id of the job's first communicator: rank 0 makes it and writes the file ZERO1_NCCL_ID names, the
/// others wait for it. Throws std::runtime_error where the file cannot be written or does not come within a
/// minute.
ncclUniqueId job_id(int rank, int size);

class NcclCommunicator {
 public:
  static constexpr const char* kName = "nccl";

  struct Job {
    Job(int&, char**&) {}
  };
  static void abort(int code);

  NcclCommunicator() = default;
  NcclCommunicator(NcclCommunicator&& other) noexcept { *this = std::move(other); }
  NcclCommunicator& operator=(NcclCommunicator&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(rank_, other.rank_);
    std::swap(size_, other.size_);
    std::swap(ordered_, other.ordered_);
    return *this;
  }
  ~NcclCommunicator() {
    if (comm_ != nullptr) ncclCommDestroy(comm_);
  }

  static NcclCommunicator world();

  int rank() const { return rank_; }
  int size() const { return size_; }
  void set_ordered(bool ordered) { ordered_ = ordered; }

  ZERO1_INLINE NcclCommunicator split(int color, int key, [[maybe_unused]] const char* name) const {
    ncclComm_t made = nullptr;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    config.commName = name;
#endif
    check(ncclCommSplit(comm_, color, key, &made, &config));
    return adopted(made, ordered_);
  }

  ZERO1_INLINE void all_reduce(void* values, std::size_t count, DType type, Sum op) const {
    const Staged staged(values, count * bytes_of(type));
    if (ordered_ && op == Sum::kSum) {
      const Staged all(nullptr, count * bytes_of(type) * static_cast<std::size_t>(size_));
      check(ncclAllGather(staged.data(), all.data(), count, type_of(type), comm_, nullptr));
      wait();
      return sum_in_rank_order(all.data(), values, count, count, size_, type);
    }
    check(ncclAllReduce(staged.data(), staged.data(), count, type_of(type),
                        op == Sum::kSum ? ncclSum : ncclMax, comm_, nullptr));
    staged.take_back(values);
  }

  ZERO1_INLINE void reduce_scatter(void* values, std::size_t each, DType type) const {
    const std::size_t offset = each * bytes_of(type) * static_cast<std::size_t>(rank_);
    const Staged staged(values, each * bytes_of(type) * static_cast<std::size_t>(size_));
    if (ordered_) {
      const Staged all(nullptr, staged.bytes() * static_cast<std::size_t>(size_));
      check(ncclAllGather(staged.data(), all.data(), each * static_cast<std::size_t>(size_), type_of(type),
                          comm_, nullptr));
      wait();
      return sum_in_rank_order(all.data() + offset, static_cast<std::byte*>(values) + offset, each,
                               each * static_cast<std::size_t>(size_), size_, type);
    }
    check(ncclReduceScatter(staged.data(), staged.data() + offset, each, type_of(type), ncclSum, comm_,
                            nullptr));
    staged.take_back(values);
  }

  ZERO1_INLINE void all_gather(void* values, std::size_t each, DType type) const {
    const std::size_t offset = each * bytes_of(type) * static_cast<std::size_t>(rank_);
    const Staged staged(values, each * bytes_of(type) * static_cast<std::size_t>(size_));
    check(ncclAllGather(staged.data() + offset, staged.data(), each, type_of(type), comm_, nullptr));
    staged.take_back(values);
  }
  ZERO1_INLINE void broadcast(void* values, std::size_t count, DType type, int root) const {
    const Staged staged(values, count * bytes_of(type));
    check(ncclBroadcast(staged.data(), staged.data(), count, type_of(type), root, comm_, nullptr));
    staged.take_back(values);
  }
  ZERO1_INLINE void send(const void* values, std::size_t count, DType type, int peer) const {
    const Staged staged(values, count * bytes_of(type));
    check(ncclSend(staged.data(), count, type_of(type), peer, comm_, nullptr));
    wait();
  }
  ZERO1_INLINE void recv(void* values, std::size_t count, DType type, int peer) const {
    const Staged staged(nullptr, count * bytes_of(type));
    check(ncclRecv(staged.data(), count, type_of(type), peer, comm_, nullptr));
    staged.take_back(values);
  }
  /// NCCL has none: a reduction of one number does it.
  ZERO1_INLINE void barrier() const {
    std::int64_t one = 1;
    all_reduce(&one, 1, DType::kI64, Sum::kMax);
  }

 private:
  /// Device memory with a copy of the values: losses and norms lie on the host's stack, where no GPU reaches.
  /// `values` may be null.
  class Staged {
   public:
    Staged(const void* values, std::size_t bytes) : bytes_(bytes) {
      check_cuda_call(cudaMalloc(&memory_, bytes > 0 ? bytes : 1));
      if (values != nullptr) check_cuda_call(cudaMemcpy(memory_, values, bytes, cudaMemcpyDefault));
    }
    Staged(const Staged&) = delete;
    Staged& operator=(const Staged&) = delete;
    ~Staged() { cudaFree(memory_); }
    std::byte* data() const { return static_cast<std::byte*>(memory_); }
    std::size_t bytes() const { return bytes_; }
    void take_back(void* values) const {
      wait();
      check_cuda_call(cudaMemcpy(values, memory_, bytes_, cudaMemcpyDefault));
    }

   private:
    void* memory_ = nullptr;
    std::size_t bytes_;
  };

  static NcclCommunicator adopted(ncclComm_t comm, bool ordered);
  static void check(ncclResult_t code) {
    if (code != ncclSuccess) throw std::runtime_error(std::string("NCCL: ") + ncclGetErrorString(code));
  }
  static void check_cuda_call(cudaError_t code) {
    if (code != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(code));
  }
  static void wait() { check_cuda_call(cudaStreamSynchronize(nullptr)); }
  static ncclDataType_t type_of(DType type) {
    switch (type) {
      case DType::kF64:
        return ncclFloat64;
      case DType::kF32:
        return ncclFloat32;
      case DType::kBf16:
        return ncclBfloat16;
      case DType::kU8:
        return ncclUint8;
      case DType::kI64:
        return ncclInt64;
    }
    return ncclFloat32;
  }

  ncclComm_t comm_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
  bool ordered_ = false;
};

}  // namespace zero1
