#include "communicator.h"

#include <utility>

namespace zero1 {

[[gnu::noinline]] Groups make_groups(Communicator world, int stages, int replicas, bool owns_tied_copy) {
  Groups groups;
  groups.stages = stages;
  groups.replicas = replicas;
  groups.place = {world.rank() / replicas, world.rank() % replicas};
  const int stage = groups.place.stage;
  const int replica = groups.place.replica;
  groups.model = world.split(replica, stage, "model");
  groups.data = world.split(stage, replica, "data");
  groups.pipe = world.split(replica, stage, "pipe");
  groups.tied = world.split(owns_tied_copy ? replica : replicas + world.rank(), stage,
                            owns_tied_copy ? "tied" : "alone");
  groups.world = std::move(world);
  return groups;
}

}  // namespace zero1
