#!/usr/bin/env python3
"""The gradient norm, reduced once per optimizer group (class T14): the hang that this project began with, in one page.

Two pipeline stages clip by the norm of the whole model. Stage 0 has weights and biases, two optimizer groups; stage
1 holds the tied embedding alone, so its no-decay group is empty and was dropped. The norm is all-reduced inside the
loop over groups: twice on stage 0, once on stage 1, which is by then in the broadcast of the loss. Cure: add up
over the groups, reduce once.

Run: python3 launch.py 2 norm_per_group.py [--fixed]
"""
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv
STEPS = 2


def parameter_groups(stage):
    decay = [p for p in stage.parameters() if p.dim() > 1]
    no_decay = [p for p in stage.parameters() if p.dim() == 1]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]  # an optimizer refuses empty ones


def get_grad_norm(params, model_group):
    total = sum((p.grad.square().sum() for p in params), torch.zeros(())).reshape(1)
    dist.all_reduce(total, group=model_group)
    return total


def scaled_global_norm(optimizer, model_group):
    if FIXED:
        everything = [p for group in optimizer.param_groups for p in group["params"]]
        return get_grad_norm(everything, model_group).sqrt()
    norms = [get_grad_norm(group["params"], model_group) for group in optimizer.param_groups]
    return sum(norms).sqrt()


def aggregate_loss(loss, pipe_group):
    dist.broadcast(loss, src=1, group=pipe_group)
    return loss.item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model_group, pipe_group = dist.new_group([0, 1]), dist.new_group([0, 1])
    torch.manual_seed(1)
    stage = torch.nn.Linear(8, 8) if rank == 0 else torch.nn.Embedding(16, 8)
    optimizer = torch.optim.AdamW(parameter_groups(stage), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        output = stage(torch.randn(4, 8)) if rank == 0 else stage(torch.arange(16))
        loss = output.square().mean()
        loss.backward()
        norm = scaled_global_norm(optimizer, model_group)
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad *= 1.0 / max(1.0, norm.item())
        optimizer.step()
        logged = loss.detach().reshape(1)
        mean = aggregate_loss(logged, pipe_group)
        if rank == 0:
            print("step %d loss %.5f norm %.5f" % (step, mean, norm.item()), flush=True)
    # `logged` lives on: torch 1.13 may stop for good if gloo's thread is the last that holds a tensor while its group is destroyed.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
