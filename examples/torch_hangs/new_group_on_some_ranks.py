#!/usr/bin/env python3
"""new_group called by the members only (public reports of class T15).

Ranks 0 and 1 make a group for the embedding and leave ranks 2 and 3 out of the call, since they are not in it.
torch wants every rank of the job in new_group, in one order. Up to torch 1.13 at least new_group ends with a
barrier of the whole job, in which ranks 0 and 1 stand while the others are in the all_reduce of the data sizes.
Versions without that barrier let ranks 0 and 1 through, and hang at the second group: each rank numbers groups by
itself, so the two sides look for each other under different names. Cure: all ranks make all groups (or
use_local_synchronization=True, where torch has it).

Run: python3 launch.py 4 new_group_on_some_ranks.py [--fixed]
"""
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv


def make_embedding_group(rank):
    members = [0, 1]
    if FIXED or rank in members:
        return dist.new_group(members)
    return None


def count_samples(rank):
    samples = torch.tensor([100 + rank])
    dist.all_reduce(samples)
    return int(samples)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    embedding_group = make_embedding_group(rank)
    samples = count_samples(rank)
    model_group = dist.new_group([0, 1, 2, 3])
    gradient = torch.ones(8) * (rank + 1)
    if rank < 2:
        dist.all_reduce(gradient, group=embedding_group)
    norm = gradient.square().sum().reshape(1)
    dist.all_reduce(norm, group=model_group)
    if rank == 0:
        print("samples %d norm %.4f" % (samples, norm.sqrt().item()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
