#include "data_parallel_calls.h"

namespace zero1 {

[[gnu::noinline]] void allreduce_bucket(const Communicator& data, void* grads, std::size_t count,
                                        DType type) {
  data.all_reduce(grads, count, type, Sum::kSum);
}

[[gnu::noinline]] void reduce_scatter_bucket(const Communicator& data, void* grads, std::size_t each,
                                             DType type) {
  data.reduce_scatter(grads, each, type);
}

[[gnu::noinline]] void all_gather_partitions(const Communicator& data, void* weights, std::size_t each,
                                             DType type) {
  data.all_gather(weights, each, type);
}

}  // namespace zero1
