// The calls between stages. Each is a function of its own, with the pipeline engine's word for it, so that a
// report names it.
#pragma once

#include <cstddef>

#include "communicator.h"

namespace zero1 {

void _exec_send_activations(const Groups& ranks, const void* values, std::size_t count, DType type);
void _exec_recv_activations(const Groups& ranks, void* values, std::size_t count, DType type);
void _exec_send_grads(const Groups& ranks, const void* values, std::size_t count, DType type);
void _exec_recv_grads(const Groups& ranks, void* values, std::size_t count, DType type);

/// Adds the gradients of the copies of a tied weight; called by every stage that owns one, once per batch.
void allreduce_tied_weight_gradients(const Groups& ranks, void* grads, std::size_t count, DType type);

/// Mean loss over the replicas of the last stage, told to all its stages. `loss` matters on the last stage
/// only.
double _aggregate_total_loss(const Groups& ranks, double loss);

}  // namespace zero1
