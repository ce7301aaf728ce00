// What changed in DeepSpeed and torch between versions, as far as plans are concerned.
#pragma once

#include <string_view>

namespace lockstep::plan {

/// Each is true from the release on in which the change first shipped.
struct DeepSpeedBehaviour {
  bool dynamic_partition = true;       ///< 0.12.5, #4312
  bool new_schedule = true;            ///< 0.8.3, #2862: gradients before activations
  bool skips_lone_model_group = true;  ///< 0.7.5, #2494: no reduction over a model group of one rank
  bool skips_lone_allgather = true;    ///< 0.10.2, #4167: no all-gather in a data group of one rank
  bool one_meta_message = true;        ///< 0.15.0, #5481: shapes of activations in one message
};

/// For "0.5.5" and the like; what is no such number is taken for the newest.
DeepSpeedBehaviour deepspeed_behaviour(std::string_view version);

/// From torch 2.15 on pipelining's orders name the waits for sends and reductions. Where it cannot be told: not.
bool torch_names_waits(std::string_view version);

/// Whether pipelining's class for one stage a rank refuses fewer micro-batches than stages: Schedule1F1B from torch 2.7 on,
/// ScheduleGPipe in 2.7 to 2.10. Where it cannot be told: as the newest.
bool torch_refuses_few_micro_batches(std::string_view version, bool is_1f1b);

/// From torch 2.12 on all stages agree in the first step whether shapes are exchanged, whichever were made with
/// input_args; and only messages both ways are a batch, others go alone. Where it cannot be told: not.
bool torch_agrees_on_shapes(std::string_view version);

/// From torch 2.10 on the groups of a DeviceMesh are made in the order of their first ranks. Where it cannot be told: not.
bool torch_sorts_mesh_groups(std::string_view version);

/// From torch 2.5 on a bucket_cap_mb that is given holds for DDP's first bucket too, which else has a megabyte (pytorch
/// #121640; not in 2.3, in 2.8). Where it cannot be told: it does.
bool torch_caps_first_bucket(std::string_view version);

/// Newest versions that the room's rules were checked against; empty where `version` is not newer than that
/// and can be told.
std::string_view unchecked_version_note(std::string_view framework, std::string_view version);

}  // namespace lockstep::plan
