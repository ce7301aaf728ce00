#!/usr/bin/env python3
"""Gradient buckets in another order on one rank (public reports of class T11).

As in ZeRO-1 each rank owns a share of the gradients, and every bucket is reduced to its owner. A bucket is reduced
when its part of the model is done, and the parts are run in the order in which the batch lists its modalities: rank
1's data loader yields images first. All reductions are issued at once and waited for afterwards. The buckets have
one size, so only the roots tell them apart; each rank waits for data that the other keeps for its second call.
(With buckets of different sizes gloo may end the run with an error instead, or add up what does not belong
together.) Cure: walk in sorted order.

Run: python3 launch.py 2 bucket_order.py [--fixed]
"""
import sys

import torch
import torch.distributed as dist

FIXED = "--fixed" in sys.argv
STEPS = 3
OWNERS = {"image": 1, "text": 0}


def load_batch(rank):
    modalities = ["text", "image"] if rank == 0 else ["image", "text"]
    return {modality: torch.randn(8, 32) for modality in modalities}


def backward(weights, batch):
    buckets = {}
    for modality, data in (sorted(batch.items()) if FIXED else batch.items()):
        loss = (data @ weights[modality] - data.sum(dim=1)).square().mean()
        buckets[modality], = torch.autograd.grad(loss, weights[modality])
    return buckets


def reduce_gradients(buckets):
    works = [dist.reduce(bucket, dst=OWNERS[name], async_op=True) for name, bucket in buckets.items()]
    for work in works:
        work.wait()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)
    weights = {name: torch.zeros(32, requires_grad=True) for name in OWNERS}
    for _ in range(STEPS):
        buckets = backward(weights, load_batch(rank))
        reduce_gradients(buckets)
        for name, owner in OWNERS.items():
            if owner == rank:
                weights[name].data -= 0.01 * buckets[name]
            dist.broadcast(weights[name].data, src=owner)
    if rank == 0:
        print({name: round(weights[name].sum().item(), 4) for name in sorted(weights)}, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
