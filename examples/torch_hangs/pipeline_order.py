#!/usr/bin/env python3
"""Two pipeline stages that both send first (public reports of class T13).

Each step runs two micro-batches through two stages, one forward and one backward at a time. After its first
forward, stage 0 sends the second activation before it takes the first gradient; stage 1 sends that gradient before
it takes the second activation. gloo hands a message over only when the receive is there, as NCCL does for large
ones, so each stage stands in its send. Cure: stage 0 receives first.

Run: python3 launch.py 2 pipeline_order.py [--fixed]
"""
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv
STEPS, WIDTH = 2, 16


def run_first_stage(stage, batches):
    outputs = [stage(batch) for batch in batches]
    gradients = [torch.empty_like(output) for output in outputs]
    dist.send(outputs[0].detach(), dst=1)
    if FIXED:
        dist.recv(gradients[0], src=1)
        dist.send(outputs[1].detach(), dst=1)
    else:
        dist.send(outputs[1].detach(), dst=1)
        dist.recv(gradients[0], src=1)
    dist.recv(gradients[1], src=1)
    for output, gradient in zip(outputs, gradients):
        output.backward(gradient)


def run_last_stage(stage, batches):
    total = 0.0
    for batch in batches:
        activation = torch.empty(batch.shape[0], WIDTH)
        dist.recv(activation, src=0)
        activation.requires_grad_()
        loss = (stage(activation) - batch.sum(dim=1, keepdim=True)).square().mean()
        loss.backward()
        dist.send(activation.grad, dst=0)
        total += loss.item()
    return total / len(batches)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    stage = torch.nn.Linear(8, WIDTH) if rank == 0 else torch.nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.05)
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        batches = [torch.randn(4, 8, generator=generator) for _ in range(2)]
        optimizer.zero_grad()
        if rank == 0:
            run_first_stage(stage, batches)
        else:
            print("step %d loss %.5f" % (step, run_last_stage(stage, batches)), flush=True)
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
