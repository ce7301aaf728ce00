#!/usr/bin/env python3
"""A step that one rank leaves early (public reports of classes T04 and T07).

Every step each rank looks at its own loss and returns when it is not finite. At step 2 only rank 1 meets a bad
sample: it leaves before its gradients are reduced and goes on to log the loss, while the others stand in the
all_reduce of the gradients. Cure: decide together, by a flag that is reduced first.

Run: python3 launch.py 3 early_return.py [--fixed]
"""
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv
STEPS = 5


def is_bad(loss):
    bad = torch.tensor([0.0 if torch.isfinite(loss) else 1.0])
    if FIXED:
        dist.all_reduce(bad, op=dist.ReduceOp.MAX)
    return bad.item() > 0


def train_step(model, optimizer, batch):
    loss = (model(batch) - batch.sum(dim=1, keepdim=True)).square().mean()
    if is_bad(loss):
        return loss.detach()
    optimizer.zero_grad()
    loss.backward()
    flat = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    offset = 0
    for parameter in model.parameters():
        parameter.grad.copy_(flat[offset:offset + parameter.numel()].view_as(parameter))
        offset += parameter.numel()
    optimizer.step()
    return loss.detach()


def log_loss(loss, step):
    total = loss.reshape(1).clone()
    dist.reduce(total, dst=0)
    if dist.get_rank() == 0:
        print("step %d loss %.5f" % (step, total.item() / dist.get_world_size()), flush=True)
    return total


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(100 + rank)
    for step in range(STEPS):
        batch = torch.randn(16, 8)
        if rank == 1 and step == 2:
            batch[3, 4] = float("inf")  # the bad sample
        logged = log_loss(train_step(model, optimizer, batch), step)
    # `logged` lives on: torch 1.13 may stop for good if gloo's thread is the last that holds a tensor while its group is destroyed.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
