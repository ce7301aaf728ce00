#!/usr/bin/env python3
"""Evaluation on rank 0, with the wrapped model (public reports of class T02).

After every epoch rank 0 evaluates while the others wait for it in a barrier. It calls the DistributedDataParallel
wrapper to do so, and since the model has a BatchNorm the wrapper's forward pass broadcasts the buffers from rank 0:
a broadcast that nobody else makes, at the place of the barrier. (Without the barrier it can pass unnoticed: it
meets the broadcast of the others' next training step, and rank 0 leaves that one out.) Cure: evaluate model.module.

Run: python3 launch.py 3 eval_on_rank0.py [--fixed]
"""
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FIXED = "--fixed" in sys.argv
EPOCHS, STEPS = 2, 3


def loss_of(model, batch):
    return (model(batch) - batch.sum(dim=1, keepdim=True)).square().mean()


def evaluate(model):
    if FIXED:
        model = model.module
    model.eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        losses = [loss_of(model, torch.randn(8, 16, generator=generator)).item() for _ in range(2)]
    model.train()
    return sum(losses) / len(losses)


def train_epoch(model, optimizer):
    for _ in range(STEPS):
        loss = loss_of(model, torch.randn(8, 16))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    layers = [torch.nn.Linear(16, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 1)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(100 + rank)
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer)
        if rank == 0:
            print("epoch %d loss %.4f" % (epoch, evaluate(model)), flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
