"""Steps of FSDP2 on the CPU: a small transformer by fully_shard, layer by layer, with clipping over shards, a second dimension of replicas where there are four ranks, and
a checkpoint of the whole state. Prints losses."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def say(*values):
    os.write(1, (" ".join(map(str, values)) + "\n").encode())  # in one piece: other ranks write there, too


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(4)
    size = dist.get_world_size()
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicate", "shard")) if size > 2 else init_device_mesh("cpu", (size,))
    model = nn.Sequential(nn.Embedding(20, 16), *(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True) for _ in range(3)), nn.Linear(16, 20))
    policy = MixedPrecisionPolicy(reduce_dtype=torch.float32)
    for layer in model:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(3):
        words = torch.randint(0, 20, (2, 7), generator=torch.Generator().manual_seed(10 * step + dist.get_rank()))
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        say("step", step, "loss", repr(float(loss.detach())), "norm", repr(float(norm.full_tensor())))
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    say("state", len(state), repr(float(sum(t.double().abs().sum() for t in state.values()))))
    dist.barrier()
    dist.destroy_process_group()


main()
