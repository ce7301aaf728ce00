// See the header.
#include "support/big_jobs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/job_builder.h"

namespace lockstep::testing {
namespace {

/// rank = (data * pipeline_size + stage) * tensor_size + lane
struct Topology {
  std::int32_t tensor = 1;
  std::int32_t pipeline = 1;
  std::int32_t data = 1;
};

/// Communicators along each axis, and calls on them.
class JobWriter {
 public:
  JobWriter(Library library, Topology topology) : topology_(topology) {
    builder_.set_library(library);
    const std::int32_t ranks = topology.tensor * topology.pipeline * topology.data;
    tensor_.resize(static_cast<std::size_t>(ranks));
    pipeline_.resize(tensor_.size());
    data_.resize(tensor_.size());
    const std::int32_t stride_data = topology.tensor * topology.pipeline;
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const std::int32_t lane = rank % topology.tensor;
      const std::int32_t stage = rank / topology.tensor % topology.pipeline;
      const std::int32_t replica = rank / stride_data;
      const auto index = static_cast<std::size_t>(rank);
      tensor_[index] = axis("tp", rank - lane, 1, topology.tensor);
      pipeline_[index] = axis("pp", lane + replica * stride_data, topology.tensor, topology.pipeline);
      data_[index] = axis("dp", lane + stage * topology.tensor, stride_data, topology.data);
    }
    half_ = builder_.datatype("bf16");
    full_ = builder_.datatype("f32");
    sum_ = builder_.redop("sum");
  }

  std::int32_t ranks() const { return static_cast<std::int32_t>(tensor_.size()); }
  std::int32_t stage(std::int32_t rank) const { return rank / topology_.tensor % topology_.pipeline; }
  std::size_t begin(std::int32_t rank, std::size_t calls) {
    rank_ = rank;
    builder_.program(rank).operations.reserve(calls);
    builder_.set_end(rank, {.kind = EndKind::kExited});
    launch_ = 0;
    return static_cast<std::size_t>(rank);
  }
  std::size_t calls() { return operations().size(); }

  void on_tensor(OpKind kind, std::uint64_t count) {
    collective(kind, tensor_[static_cast<std::size_t>(rank_)], count);
  }
  void on_data(OpKind kind, std::uint64_t count) {
    collective(kind, data_[static_cast<std::size_t>(rank_)], count);
  }
  void on_pipeline(OpKind kind, std::uint64_t count) {
    collective(kind, pipeline_[static_cast<std::size_t>(rank_)], count);
  }

  void open_batch() { ++launch_; }
  /// Part of the open batch: to or from the stage `step` further on; nothing where there is none.
  void message(OpKind kind, std::int32_t step) {
    const std::int32_t to = stage(rank_) + step;
    if (to < 0 || to >= topology_.pipeline) return;
    operations().push_back({.count = Count::of(1 << 20),
                            .comm = pipeline_[static_cast<std::size_t>(rank_)],
                            .peer = rank_ + step * topology_.tensor,
                            .launch = launch_,
                            .datatype = half_,
                            .kind = kind});
  }

  Program& program(std::int32_t rank) { return builder_.program(rank); }
  Job build() && { return std::move(builder_).build(); }

 private:
  CommIndex axis(const std::string& name, std::int32_t first, std::int32_t stride, std::int32_t size) {
    std::vector<std::int32_t> members;
    for (std::int32_t i = 0; i < size; ++i) members.push_back(first + i * stride);
    return builder_.communicator(name + std::to_string(first), name, members);
  }

  OperationTable& operations() { return builder_.program(rank_).operations; }

  void collective(OpKind kind, CommIndex comm, std::uint64_t count) {
    operations().push_back({.count = Count::of(count),
                            .comm = comm,
                            .datatype = has_reduction(kind) ? full_ : half_,
                            .redop = has_reduction(kind) ? sum_ : RedopIndex{},
                            .kind = kind});
  }

  Topology topology_;
  JobBuilder builder_;
  std::vector<CommIndex> tensor_, pipeline_, data_;  // by rank
  DatatypeIndex half_{}, full_{};
  RedopIndex sum_{};
  std::int32_t rank_ = 0;
  std::uint32_t launch_ = 0;
};

Topology topology_for(std::int32_t ranks) {
  if (ranks <= 8) return {.tensor = 1, .pipeline = 1, .data = ranks};
  return {.tensor = 8, .pipeline = 8, .data = ranks / 64};
}

void write_three_axes(JobWriter& writer, std::int32_t calls) {
  for (std::int32_t rank = 0; rank < writer.ranks(); ++rank) {
    writer.begin(rank, static_cast<std::size_t>(calls));
    for (std::int32_t i = 0; i < calls; ++i) {
      const auto count = static_cast<std::uint64_t>(1024 + i % 7);
      switch (i % 8) {
        case 0:
          writer.on_data(OpKind::kAllGather, count);
          break;
        case 6:
          writer.on_data(OpKind::kReduceScatter, count);
          break;
        case 7:
          writer.on_pipeline(OpKind::kAllReduce, 1);
          break;
        default:
          writer.on_tensor(OpKind::kAllReduce, count);
          break;
      }
    }
  }
}

/// One 1F1B step of one rank (PipeDream-Flush; Megatron's forward_backward_pipelining_without_interleaving).
void write_step(JobWriter& writer, std::int32_t rank, std::int32_t stages, std::int32_t micro_batches,
                bool tensor) {
  const std::int32_t warm_up = std::min(stages - writer.stage(rank) - 1, micro_batches);
  const std::int32_t steady = micro_batches - warm_up;
  const auto pass = [&] {
    if (tensor) writer.on_tensor(OpKind::kAllReduce, 4096);
  };
  const auto exchange = [&](OpKind first, std::int32_t first_step, OpKind second, std::int32_t second_step) {
    writer.open_batch();
    writer.message(first, first_step);
    if (second != OpKind::kUnknown) writer.message(second, second_step);
  };
  for (std::int32_t i = 0; i < warm_up; ++i) {
    exchange(OpKind::kIrecv, -1, OpKind::kUnknown, 0);
    pass();
    exchange(OpKind::kIsend, +1, OpKind::kUnknown, 0);
  }
  if (steady > 0) exchange(OpKind::kIrecv, -1, OpKind::kUnknown, 0);
  for (std::int32_t i = 0; i < steady; ++i) {
    pass();
    exchange(OpKind::kIsend, +1, OpKind::kIrecv, +1);
    pass();
    const bool last = i + 1 == steady;
    exchange(OpKind::kIsend, -1, last ? OpKind::kUnknown : OpKind::kIrecv, -1);
  }
  for (std::int32_t i = 0; i < warm_up; ++i) {
    exchange(OpKind::kIrecv, +1, OpKind::kUnknown, 0);
    pass();
    exchange(OpKind::kIsend, -1, OpKind::kUnknown, 0);
  }
}

}  // namespace

Job three_axes_job(std::int32_t ranks, std::int32_t calls) {
  JobWriter writer(Library::kNccl, topology_for(ranks));
  write_three_axes(writer, calls);
  return std::move(writer).build();
}

Job outlier_job(std::int32_t ranks, std::int32_t calls, std::int32_t outlier) {
  JobWriter writer(Library::kNccl, topology_for(ranks));
  write_three_axes(writer, calls);
  auto& operations = writer.program(outlier).operations;
  operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(operations.size() / 2));
  return std::move(writer).build();
}

Job pipeline_job(std::int32_t pipelines, std::int32_t stages, std::int32_t micro_batches,
                 std::int32_t calls) {
  JobWriter writer(Library::kTorch, {.pipeline = stages, .data = pipelines});
  const std::int32_t steps = std::max(1, calls / (4 * micro_batches));
  for (std::int32_t rank = 0; rank < writer.ranks(); ++rank) {
    writer.begin(rank, static_cast<std::size_t>(calls));
    for (std::int32_t step = 0; step < steps; ++step) write_step(writer, rank, stages, micro_batches, false);
  }
  return std::move(writer).build();
}

Job mixed_job(std::int32_t ranks, std::int32_t calls) {
  const Topology topology = topology_for(ranks);
  JobWriter writer(Library::kTorch, topology);
  constexpr std::int32_t kMicroBatches = 16;
  const std::int32_t steps = std::max(1, calls / (6 * kMicroBatches));
  for (std::int32_t rank = 0; rank < writer.ranks(); ++rank) {
    writer.begin(rank, static_cast<std::size_t>(calls));
    for (std::int32_t step = 0; step < steps; ++step) {
      write_step(writer, rank, topology.pipeline, kMicroBatches, true);
      writer.on_data(OpKind::kReduceScatter, 1 << 22);
      writer.on_pipeline(OpKind::kAllReduce, 1);
      writer.on_data(OpKind::kAllGather, 1 << 22);
    }
  }
  return std::move(writer).build();
}

}  // namespace lockstep::testing
