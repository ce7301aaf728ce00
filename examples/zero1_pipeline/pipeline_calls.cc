#include "pipeline_calls.h"

namespace zero1 {

[[gnu::noinline]] void _exec_send_activations(const Groups& ranks, const void* values, std::size_t count,
                                              DType type) {
  ranks.world.send(values, count, type, ranks.rank_of_stage(ranks.place.stage + 1));
}

[[gnu::noinline]] void _exec_recv_activations(const Groups& ranks, void* values, std::size_t count,
                                              DType type) {
  ranks.world.recv(values, count, type, ranks.rank_of_stage(ranks.place.stage - 1));
}

[[gnu::noinline]] void _exec_send_grads(const Groups& ranks, const void* values, std::size_t count,
                                        DType type) {
  ranks.world.send(values, count, type, ranks.rank_of_stage(ranks.place.stage - 1));
}

[[gnu::noinline]] void _exec_recv_grads(const Groups& ranks, void* values, std::size_t count, DType type) {
  ranks.world.recv(values, count, type, ranks.rank_of_stage(ranks.place.stage + 1));
}

[[gnu::noinline]] void allreduce_tied_weight_gradients(const Groups& ranks, void* grads, std::size_t count,
                                                       DType type) {
  ranks.tied.all_reduce(grads, count, type, Sum::kSum);
}

[[gnu::noinline]] double _aggregate_total_loss(const Groups& ranks, double loss) {
  if (ranks.is_last() && ranks.replicas > 1) {
    ranks.data.all_reduce(&loss, 1, DType::kF64, Sum::kSum);
    loss /= ranks.replicas;
  }
  ranks.pipe.broadcast(&loss, 1, DType::kF64, ranks.stages - 1);
  return loss;
}

}  // namespace zero1
