#!/usr/bin/env python3
"""Ranks that name different roots (public reports of class T16).

At a restart the rank with the newest checkpoint shall broadcast its weights. Each rank works out which one that is
from the files that it sees, and rank 2 sees a newer one on its local disk that the others do not. gloo sends a
broadcast down a tree: rank 1 gets its copy from rank 0 and goes on, ranks 0 and 2 both take themselves for the root
and wait to be read from. Cure: gather what every rank has, and choose from that.

Run: python3 launch.py 3 wrong_root.py [--fixed]
"""
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv

# Step of the newest checkpoint that each rank finds on its disk.
NEWEST_ON_DISK = {0: 400, 1: 300, 2: 500}
SHARED = {0: 400, 1: 300}  # what lies on the disk that all of them see


def find_source(rank, world_size):
    if FIXED:
        mine = torch.tensor([NEWEST_ON_DISK[rank]])
        steps = [torch.zeros_like(mine) for _ in range(world_size)]
        dist.all_gather(steps, mine)
        visible = {r: int(step) for r, step in enumerate(steps)}
    else:
        visible = dict(SHARED)
        visible[rank] = NEWEST_ON_DISK[rank]
    return max(visible, key=visible.get)


def load_weights(model, source):
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=source)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(NEWEST_ON_DISK[rank])  # stands for the weights in the file
    model = torch.nn.Linear(8, 4)
    source = find_source(rank, dist.get_world_size())
    load_weights(model, source)
    total = sum(parameter.sum() for parameter in model.parameters()).detach().reshape(1)
    dist.all_reduce(total)
    if rank == 0:
        print("weights of rank %d, checksum %.5f" % (source, total.item()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
