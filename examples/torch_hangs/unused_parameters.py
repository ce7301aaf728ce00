#!/usr/bin/env python3
"""Parameters that one rank does not use (public reports of class T08).

A model has a part for images and one for text. From step 2 on rank 1 draws batches without images, so the weights
of the image part get no gradient there: of the buckets that DistributedDataParallel cuts the gradients into, rank 1
never launches the one that holds them. The others wait for it inside loss.backward(); rank 1 has gone on and waits
for them where the step's loss is logged. Cure: find_unused_parameters=True.

Run: python3 launch.py 3 unused_parameters.py [--fixed]
"""
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FIXED = "--fixed" in sys.argv
STEPS, WIDTH = 4, 512  # a bucket holds one of the large layers


class TwoTowers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.image = torch.nn.Linear(WIDTH, WIDTH)
        self.text = torch.nn.Linear(WIDTH, WIDTH)
        self.head = torch.nn.Linear(WIDTH, 1)

    def forward(self, text, image):
        hidden = 0.0 if image is None else self.image(image)
        return self.head(hidden + self.text(text))


def log_loss(loss, step):
    total = loss.detach().reshape(1).clone()
    dist.reduce(total, dst=0)
    if dist.get_rank() == 0:
        print("step %d loss %.5f" % (step, total.item() / dist.get_world_size()), flush=True)
    return total


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DistributedDataParallel(TwoTowers(), bucket_cap_mb=1, find_unused_parameters=FIXED)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
    torch.manual_seed(100 + rank)
    for step in range(STEPS):
        text, image = torch.randn(8, WIDTH), torch.randn(8, WIDTH)
        if rank == 1 and step >= 2:
            image = None
        loss = (model(text, image) - text.sum(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logged = log_loss(loss, step)
    # `logged` lives on: torch 1.13 may stop for good if gloo's thread is the last that holds a tensor while its group is destroyed.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
