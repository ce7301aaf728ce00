#!/usr/bin/env python3
"""A barrier that slipped under `if rank == 0:` (public reports of class T01).

Three ranks train a linear model with hand-written data parallelism. Every second step rank 0 writes a checkpoint,
and the barrier that should keep all ranks together until the file is there is indented one level too deep. Rank 0
stands in the barrier; the others have gone on to the next step and stand in its all_reduce.

Run: python3 launch.py 3 checkpoint_barrier.py [--fixed]
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv
STEPS = 4


def save_checkpoint(model, step, rank):
    if rank == 0:
        with tempfile.TemporaryDirectory() as folder:
            torch.save(model.state_dict(), os.path.join(folder, "step%d.pt" % step))
        if not FIXED:
            dist.barrier()
    if FIXED:
        dist.barrier()


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(100 + rank)
    for step in range(STEPS):
        inputs = torch.randn(16, 8)
        loss = (model(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
        if step % 2 == 1:
            save_checkpoint(model, step, rank)
    if rank == 0:
        print("weights", [round(w, 5) for w in model.weight.flatten().tolist()], flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
