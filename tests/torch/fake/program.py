"""One process of a small job on the torch beside this file."""
import os
import sys

import torch
import torch.distributed as dist
import colorsys  # torch imports more after its distributed part; what comes next lets the recorder see that it is there


def train():
    for step in range(3):
        print(step, dist.all_reduce([1.0, 2.0]))


dist.init_process_group("gloo")
train()
group = dist.new_group([0])
print(dist.all_reduce([3.0], group=group), group.size(), torch.__version__)
if "FAKE_NCCL" in os.environ:
    print(torch._fake_c10d.BELOW.fake_destroy())
try:
    group.nothing_of_the_kind
except AttributeError as error:
    print(error)
dist.destroy_process_group()
print(sorted(set(os.environ) - {"LD_PRELOAD", "LOCKSTEP_DIR", "LOCKSTEP_RUN", "LOCKSTEP_PYTHON"}), len(sys.path), len(sys.modules), [str(type(finder)) for finder in sys.meta_path])
