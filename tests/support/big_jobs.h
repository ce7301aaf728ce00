// Big jobs that agree, shaped like training: for benchmarks and for tests of size.
#pragma once

#include <cstdint>

#include "model/job.h"

namespace lockstep::testing {

/// `ranks` (a multiple of 64, or at most 8) on three axes, tensor x pipeline x data, each rank making `calls`
/// collectives in the rhythm of a sharded training step. Library nccl.
Job three_axes_job(std::int32_t ranks, std::int32_t calls);

/// `pipelines` pipelines of `stages` ranks, each running 1F1B steps of `micro_batches` until every rank has
/// made about `calls` calls, in batches as Megatron makes them. Library torch.
Job pipeline_job(std::int32_t pipelines, std::int32_t stages, std::int32_t micro_batches, std::int32_t calls);

/// Both: 1F1B with tensor-parallel collectives in every forward and backward pass, gradient reduction after
/// each step.
Job mixed_job(std::int32_t ranks, std::int32_t calls);

/// three_axes_job with one call missing on `outlier`, half way.
Job outlier_job(std::int32_t ranks, std::int32_t calls, std::int32_t outlier);

}  // namespace lockstep::testing
