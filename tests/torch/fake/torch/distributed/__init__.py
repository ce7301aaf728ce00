import torch

torch._C._c10d_init()
from torch.distributed.distributed_c10d import *  # noqa: E402, F403
