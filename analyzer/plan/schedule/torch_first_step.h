// What torch.distributed.pipelining exchanges in its first step before all else, and how its messages go out: both have
// changed between releases.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/schedule/timeline.h"

namespace lockstep::plan {

/// Until torch 2.11: one batch that opens the ways to all neighbours, then for each stage the shapes of its input, as a size and
/// the bytes. Between stages on one rank nothing is sent. `stage_ranks[s]` = rank of stage s. Stages in `knows_input` were made
/// with input_args: they take no part in the exchange of shapes, neither way, and their neighbours do not know.
void prepend_torch_handshake(Timeline& timeline, const std::vector<std::int32_t>& stage_ranks,
                             const std::vector<bool>& knows_input = {});

/// From torch 2.12 on: a vote goes from the first stage to the last, and what came of it back (from 2.15 on an all-reduce, which
/// is no message). Unless every stage knows its input all exchange shapes then, of activations and of gradients.
void prepend_torch_agreement(Timeline& timeline, const std::vector<std::int32_t>& stage_ranks,
                             const std::vector<bool>& knows_input, std::string_view version);

/// From torch 2.12 on (_batch_p2p): what only sends, or only receives, is no batch.
void unbatch_one_way(Timeline& timeline);

}  // namespace lockstep::plan
