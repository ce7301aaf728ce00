"""One rank of a small job over gloo, for run.py: does what its argument says and prints what came out, the same at every run.

Only what torch 1.13 has, but for the parts that say so. RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are in the environment.
"""
import os
import signal
import subprocess
import sys
import threading

if sys.argv[1] == "without-torch":
    print("torch is", sorted(name for name in sys.modules if name.startswith("torch")))
    sys.exit(5)

if sys.argv[1] == "late":  # after a fork, and while another thread runs
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    os.waitpid(os.fork() or os._exit(0), 0)

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import nn

RANK = int(os.environ.get("RANK", "0"))
OTHER = 1 - RANK


def say(what, *values):
    shown = [value.tolist() if isinstance(value, torch.Tensor) else value for value in values]
    print(what, *shown, flush=True)


def numbers(count=4):
    return torch.arange(count, dtype=torch.float32) + 10 * RANK


def collectives():
    x = numbers()
    dist.all_reduce(x)
    say("all_reduce", x)
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    dist.broadcast(x, 1)
    say("broadcast", x)
    dist.reduce(x, 0)
    both = [torch.zeros(4), torch.zeros(4)]
    dist.all_gather(both, numbers())
    say("all_gather", *both)
    dist.gather(numbers(), both if RANK == 1 else None, 1)
    one = torch.zeros(4)
    dist.scatter(one, [torch.ones(4), 2 * torch.ones(4)] if RANK == 0 else None, 0)
    say("scatter", one)
    if hasattr(dist, "all_gather_into_tensor") and torch.__version__ >= "2":
        whole = torch.zeros(8)
        dist.all_gather_into_tensor(whole, numbers())
        say("all_gather_into_tensor", whole)
        dist.all_to_all_single(whole, torch.arange(8.0))
        say("all_to_all_single", whole)
    objects = [None, None]
    dist.all_gather_object(objects, {"rank": RANK})
    say("objects", objects)
    work = dist.all_reduce(one, async_op=True)
    work.wait()
    say("asynchronous", one, work.is_completed())
    dist.monitored_barrier()
    dist.barrier()


def messages():
    x = numbers()
    if RANK == 0:
        dist.send(x, 1, tag=3)
        dist.recv(x, 1)
    else:
        y = torch.zeros(4)
        dist.recv(y, 0, tag=3)
        dist.send(x, 0)
    say("messages", x)
    received = torch.zeros(4)
    for work in [dist.isend(x, OTHER), dist.irecv(received, OTHER)]:
        work.wait()
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, OTHER), dist.P2POp(dist.irecv, received, OTHER)]):
        work.wait()
    say("batch", received)


def from_any():
    received = torch.zeros(4)
    if RANK == 0:
        say("from any", dist.recv(received))
    else:
        dist.send(received, 0)


def groups():
    pair, alone = dist.new_group([0, 1]), dist.new_group([1])
    x = numbers()
    dist.all_reduce(x, group=pair)
    if RANK == 1:
        dist.all_reduce(x, group=alone)
    say("groups", x, dist.get_world_size(pair))
    dist.destroy_process_group(pair)


def splitting():
    """split_group, where torch has it and gloo can; what it refuses, it refuses as ever."""
    if not hasattr(dist, "split_group"):
        return say("no split_group")
    dist.all_reduce(numbers())
    for ranks in ([[0, 1]], [[0], [1]], []):
        try:
            group = dist.split_group(split_ranks=ranks)
            x = numbers()
            dist.all_reduce(x, group=group)
            say("split", ranks, x)
            dist.destroy_process_group(group)
        except Exception as error:
            say("split", ranks, type(error).__name__, str(error).splitlines()[0][:90])
    dist.barrier()


def a_thread():
    def call():
        x = numbers()
        dist.all_reduce(x)
        say("thread", x)
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def ddp():
    torch.manual_seed(3)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*(nn.Linear(64, 64) for _ in range(5))), bucket_cap_mb=0.02)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(4):
        optimizer.zero_grad()
        loss = model(torch.full((2, 64), 0.1 * (RANK + step))).square().sum()
        loss.backward()
        optimizer.step()
        say("loss", float(loss))
    say("weights", float(sum(p.double().sum() for p in model.parameters())))


def errors():
    """What the program expects to go wrong, goes wrong as ever."""
    calls = [lambda: dist.all_reduce(torch.ones(2), op="sum"), lambda: dist.broadcast(torch.ones(2), 7), lambda: dist.all_gather([], torch.ones(2))]
    if not torch.__version__.startswith("1."):  # which crashes there
        calls.append(lambda: dist.send(torch.ones(2), RANK))
    for call in calls:
        try:
            call()
            say("no error")
        except Exception as error:
            say("error", type(error).__name__, str(error).splitlines()[0][:60])


def children():
    from torch.utils.data import DataLoader
    dist.all_reduce(numbers())
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    say("fork", os.waitpid(pid, 0)[1])
    say("loader", [int(batch.sum()) for batch in DataLoader(list(range(12)), batch_size=4, num_workers=2)])
    say("child", subprocess.run([sys.executable, "-c", "import os; print(sorted(k for k in os.environ if 'LOCKSTEP' in k and 0))"],
                                stdout=subprocess.PIPE, text=True, check=False).stdout)
    dist.all_reduce(numbers())


def late():
    collectives()


def spawned(index, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=index, world_size=2)
    x = torch.ones(3) * index
    dist.all_reduce(x)
    if index == 0:
        say("spawned", x)
    dist.destroy_process_group()


def functional():
    import torch.distributed._functional_collectives as functional
    x = functional.all_reduce(numbers(), "sum", [0, 1])
    say("functional", x + 0)
    say("functional", functional.all_gather_tensor(numbers(), 0, [0, 1]) + 0)


def meshes():
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("replicate", "shard"))
    x = numbers()
    dist.all_reduce(x, group=mesh.get_group("shard"))
    say("mesh", x)
    from torch.distributed.tensor import Shard, distribute_tensor
    say("sharded", distribute_tensor(torch.arange(6.0), mesh["shard"], [Shard(0)]).full_tensor())


def fsdp2():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16))
    mesh = init_device_mesh("cpu", (2,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 16) * (RANK + 1)).square().sum()
        loss.backward()
        optimizer.step()
        say("fsdp2", float(loss))


def pipelining():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    torch.manual_seed(5)
    stage = PipelineStage(nn.Linear(8, 8), RANK, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 4, loss_fn=lambda output, target: (output - target).square().mean())
    for _ in range(2):
        losses = []
        if RANK == 0:
            schedule.step(torch.ones(8, 8))
        else:
            schedule.step(target=torch.zeros(8, 8), losses=losses)
        say("pipeline", [round(float(loss), 6) for loss in losses])


def compiled():
    torch.manual_seed(6)
    model = torch.compile(nn.parallel.DistributedDataParallel(nn.Linear(8, 8)), backend="eager")
    for _ in range(3):
        loss = model(torch.ones(2, 8) * (RANK + 1)).sum()
        loss.backward()
        say("compiled", round(float(loss), 5))


def main():
    what = sys.argv[1]
    torch.set_num_threads(1)
    if what in ("spawn", "forkserver"):  # as without a launcher: the children's ranks are arguments
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
            del os.environ[name]
        if RANK == 0:
            torch.multiprocessing.start_processes(spawned, (os.environ["MASTER_PORT"],), nprocs=2, start_method=what)
        return 0
    dist.init_process_group("gloo")
    if what == "exception":
        dist.all_reduce(numbers())
        if RANK == 1:
            raise ValueError("bad data")
        dist.all_reduce(numbers())
    elif what == "kill":
        dist.all_reduce(numbers())
        if RANK == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(numbers())
    elif what == "interrupt":
        dist.all_reduce(numbers())
        if RANK == 0:
            threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                dist.all_reduce(numbers()) if False else threading.Event().wait()
            except KeyboardInterrupt:
                say("interrupted")
        dist.barrier()
    elif what == "exit":
        dist.all_reduce(numbers())
        os._exit(3 + RANK)
    else:
        for part in what.split(","):
            globals()[part]()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
