// The communicator that this build uses, and the groups of ranks that a pipe x data x tensor job is made of.
//
// A communicator is chosen when building, not by virtual functions: its methods are inlined into the
// functions that ask for them, so that the address which a recorder sees for a call lies in the function with
// the optimizer's word for it.
#pragma once

#if defined(ZERO1_COMM_THREADS)
#include "thread_communicator.h"  // tests/zero1
#elif defined(ZERO1_COMM_NCCL)
#include "nccl_communicator.h"
#else
#include "mpi_communicator.h"
#endif

namespace zero1 {

#if defined(ZERO1_COMM_THREADS)
using Communicator = ThreadCommunicator;
#elif defined(ZERO1_COMM_NCCL)
using Communicator = NcclCommunicator;
#else
using Communicator = MpiCommunicator;
#endif

/// Where a rank stands. Ranks count replicas fastest: rank = stage * data + replica.
struct Place {
  int stage = 0;
  int replica = 0;
};

struct Groups {
  Communicator world;
  Communicator model;  ///< all stages (x tensor ranks) of one replica: what frameworks return as the
                       ///< model-parallel group
  Communicator data;   ///< all replicas of one stage
  Communicator pipe;   ///< the stages of one replica
  Communicator tied;   ///< the stages of one replica that own a copy of the tied embedding; of size 1 where
                       ///< there is one copy

  Place place;
  int stages = 1;
  int replicas = 1;

  bool is_first() const { return place.stage == 0; }
  bool is_last() const { return place.stage == stages - 1; }
  int rank_of_stage(int stage) const { return stage * replicas + place.replica; }
};

/// Every rank makes every split in the same order, with a colour of its own where it is not wanted: how many
/// communicators are made depends on nothing that differs between ranks.
Groups make_groups(Communicator world, int stages, int replicas, bool owns_tied_copy);

}  // namespace zero1
