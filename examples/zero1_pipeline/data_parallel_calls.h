// The calls between replicas of a stage. Each is a function of its own, so that a report names it.
#pragma once

#include <cstddef>

#include "communicator.h"

namespace zero1 {

/// Sums over the replicas, in place.
void allreduce_bucket(const Communicator& data, void* grads, std::size_t count, DType type);
/// Sums over the replicas, each rank getting its own part of `each` elements, in place.
void reduce_scatter_bucket(const Communicator& data, void* grads, std::size_t each, DType type);
/// Every rank gets the parts of all.
void all_gather_partitions(const Communicator& data, void* weights, std::size_t each, DType type);

}  // namespace zero1
