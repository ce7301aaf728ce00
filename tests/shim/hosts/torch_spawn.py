"""Two ranks of torch.multiprocessing.spawn, which have no launcher: they learn their places from what init_process_group is told.
torch_spawn.py DIRECTORY: they meet in a file there."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing


def work(rank, meeting_place):
    dist.init_process_group("gloo", init_method="file://" + meeting_place, rank=rank, world_size=2)
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, args=(sys.argv[1] + "/store",), nprocs=2)
    print("both ended")
