// Communication over MPI, from and to host memory. One method for each call that the pipeline needs.
#pragma once

#include <mpi.h>

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

class MpiCommunicator {
 public:
  static constexpr const char* kName = "mpi";

  /// The life of the library in this process; a rank that cannot go on calls abort, so that the others do not
  /// wait.
  struct Job {
    Job(int& argc, char**& argv) { MPI_Init(&argc, &argv); }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    ~Job() { MPI_Finalize(); }
  };
  static void abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

  MpiCommunicator() = default;
  MpiCommunicator(MpiCommunicator&& other) noexcept { *this = std::move(other); }
  MpiCommunicator& operator=(MpiCommunicator&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(rank_, other.rank_);
    std::swap(size_, other.size_);
    std::swap(ordered_, other.ordered_);
    return *this;
  }
  ~MpiCommunicator() {
    if (comm_ != MPI_COMM_NULL && comm_ != MPI_COMM_WORLD) MPI_Comm_free(&comm_);
  }

  static MpiCommunicator world() {
    MpiCommunicator world;
    world.adopt(MPI_COMM_WORLD);
    return world;
  }

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// From now on, here and in what is split off: sums are gathered and added in rank order.
  void set_ordered(bool ordered) { ordered_ = ordered; }

  ZERO1_INLINE MpiCommunicator split(int color, int key, const char* name) const {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_split(comm_, color, key, &made);
    MPI_Comm_set_name(made, name);
    MpiCommunicator result;
    result.adopt(made);
    result.ordered_ = ordered_;
    return result;
  }

  ZERO1_INLINE void all_reduce(void* values, std::size_t count, DType type, Sum op) const {
    if (ordered_ && op == Sum::kSum) {
      std::vector<std::byte> all(count * bytes_of(type) * static_cast<std::size_t>(size_));
      MPI_Allgather(values, number(count), type_of(type), all.data(), number(count), type_of(type), comm_);
      sum_in_rank_order(all.data(), values, count, count, size_, type);
      return;
    }
    WideValues wide(values, count, type);  // MPI has no bf16: such sums travel as float
    MPI_Allreduce(MPI_IN_PLACE, wide.data(), number(count), type_of(wide.type()),
                  op == Sum::kSum ? MPI_SUM : MPI_MAX, comm_);
    wide.store();
  }

  /// The sum of part r of `values`, of `each` elements, on rank r; the other parts keep what they had.
  ZERO1_INLINE void reduce_scatter(void* values, std::size_t each, DType type) const {
    const std::size_t count = each * static_cast<std::size_t>(size_);
    std::byte* own =
        static_cast<std::byte*>(values) + each * bytes_of(type) * static_cast<std::size_t>(rank_);
    if (ordered_) {
      std::vector<std::byte> all(count * bytes_of(type));  // part `rank_` of every rank
      MPI_Alltoall(values, number(each), type_of(type), all.data(), number(each), type_of(type), comm_);
      sum_in_rank_order(all.data(), own, each, each, size_, type);
      return;
    }
    WideValues wide(values, count, type);
    std::vector<std::byte> sum(each * bytes_of(wide.type()));
    MPI_Reduce_scatter_block(wide.data(), sum.data(), number(each), type_of(wide.type()), MPI_SUM, comm_);
    narrow_to(own, sum.data(), each, type);
  }

  /// Part r of `values`, of `each` elements, comes from rank r.
  ZERO1_INLINE void all_gather(void* values, std::size_t each, DType type) const {
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, number(each), type_of(type), comm_);
  }
  ZERO1_INLINE void broadcast(void* values, std::size_t count, DType type, int root) const {
    MPI_Bcast(values, number(count), type_of(type), root, comm_);
  }
  ZERO1_INLINE void send(const void* values, std::size_t count, DType type, int peer) const {
    MPI_Send(values, number(count), type_of(type), peer, 0, comm_);
  }
  ZERO1_INLINE void recv(void* values, std::size_t count, DType type, int peer) const {
    MPI_Recv(values, number(count), type_of(type), peer, 0, comm_, MPI_STATUS_IGNORE);
  }
  ZERO1_INLINE void barrier() const { MPI_Barrier(comm_); }

 private:
  void adopt(MPI_Comm comm) {
    comm_ = comm;
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
  }
  static int number(std::size_t count) {
    if (count > 0x7FFFFFFF) throw std::length_error("more elements than an MPI count holds");
    return static_cast<int>(count);
  }
  static MPI_Datatype type_of(DType type) {
    switch (type) {
      case DType::kF64:
        return MPI_DOUBLE;
      case DType::kF32:
        return MPI_FLOAT;
      case DType::kBf16:
        return MPI_UINT16_T;  // only moved, never added
      case DType::kU8:
        return MPI_UINT8_T;
      case DType::kI64:
        return MPI_INT64_T;
    }
    return MPI_DATATYPE_NULL;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool ordered_ = false;
};

}  // namespace zero1
