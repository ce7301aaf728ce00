#!/usr/bin/env python3
"""Ranks with different numbers of batches (public reports of class T05).

23 samples are cut among three ranks, eight for ranks 0 and 1 and seven for rank 2; at two samples a batch and with
the short last batch dropped that is four, four and three steps. Rank 2 leaves the loop first and waits for the
others at the end of the epoch; they wait for its part of the fourth step's gradients, which DistributedDataParallel
all-reduces in the backward pass.

Run: python3 launch.py 3 uneven_data.py [--fixed]
"""
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FIXED = "--fixed" in sys.argv
SAMPLES, BATCH = 23, 2


def batches_of(rank, world_size):
    generator = torch.Generator().manual_seed(7)
    data = torch.randn(SAMPLES, 8, generator=generator)
    mine = data[rank::world_size]
    batches = [mine[i:i + BATCH] for i in range(0, len(mine) - BATCH + 1, BATCH)]
    if FIXED:  # all ranks stop where the first of them has to
        steps = torch.tensor([len(batches)])
        dist.all_reduce(steps, op=dist.ReduceOp.MIN)
        batches = batches[:int(steps)]
    return batches


def train_epoch(model, optimizer, batches):
    loss = torch.zeros(())
    for batch in batches:
        loss = (model(batch) - batch.sum(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    return loss.item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = batches_of(rank, dist.get_world_size())
    loss = train_epoch(model, optimizer, batches)
    if rank == 0:
        print("steps %d loss %.5f" % (len(batches), loss), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
