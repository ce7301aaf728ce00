"""Runs a small torch.distributed program on gloo: torch_host.py MODE [RANKS]. The process that starts the ranks does not import torch; it prints
what they said in the order of ranks, and its exit status is theirs in one number."""
import os
import socket
import subprocess
import sys


def start_ranks(mode, count):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = []
    for rank in range(count):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(count), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                           MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        ranks.append(subprocess.Popen([sys.executable, os.path.abspath(__file__), mode], env=environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True))
    for rank, process in enumerate(ranks):
        print(f"rank {rank}:\n{process.communicate()[0]}status {process.returncode}")


def reduce_twice(dist, tensor):
    dist.all_reduce(tensor)
    work = dist.all_reduce(tensor, op=dist.ReduceOp.MAX, async_op=True)
    work.wait()


def calls(torch, dist, rank):
    tensor = torch.ones(3) * (rank + 1)
    for _ in range(3):
        reduce_twice(dist, tensor)
    dist.broadcast(torch.zeros(5, dtype=torch.float64), 1)
    if rank == 0:
        dist.send(torch.zeros(7), 1, tag=3)
    else:
        dist.recv(torch.zeros(7), 0, tag=3)
    dist.barrier()
    group = dist.new_group([1, 0])
    dist.all_reduce(tensor, group=group)
    objects = [None, None]
    dist.all_gather_object(objects, {"rank": rank})
    dist.all_gather([torch.zeros(3), torch.zeros(3)], tensor)
    dist.reduce(tensor, 1, op=dist.ReduceOp.MIN)
    print(tensor.tolist(), objects)


def ddp(torch, dist, rank):
    torch.manual_seed(1)
    net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
    model = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        model(torch.randn(4, 512)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print([float(p.sum()) for p in model.parameters()])


def run_rank(mode):
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    globals()[mode](torch, dist, rank)
    dist.destroy_process_group()


if "RANK" in os.environ:
    run_rank(sys.argv[1])
else:
    start_ranks(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2)
