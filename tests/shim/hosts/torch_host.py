"""Runs a small torch.distributed program on gloo: torch_host.py MODE [RANKS]. The process that starts the ranks does not import torch; it prints
what they said in the order of ranks, and its exit status is theirs in one number."""
import os
import subprocess
import sys


def start_ranks(mode, count):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/torch_hangs"))
    from launch import free_port  # here, so that the path of the ranks is as it was
    port = free_port()
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


def ddp_case(torch, dist, rank):
    """A case of recorded bucket sizes: six equal layers, used in some order, some skipped on some ranks."""
    import json
    case = json.loads(os.environ["DDP_CASE"])
    torch.manual_seed(1)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(512, 512) for _ in range(6))

        def forward(self, x):
            for index in case["order"]:
                if index not in case.get("skip", {}).get(str(rank), []):
                    x = self.layers[index](x)
            return x

    model = torch.nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=case["cap_mb"],
                                                      find_unused_parameters=case.get("find_unused", False),
                                                      static_graph=case.get("static", False))
    for _ in range(case["iterations"]):
        model(torch.randn(2, 512)).sum().backward()
    print([float(p.grad.sum()) for p in model.parameters()])


def swapped(torch, dist, rank):
    """The ranks that the program gives are not those of its environment."""
    dist.broadcast(torch.ones(2), 1)


def exception(torch, dist, rank):
    """An exception out of a backend, one out of a wait, and calls after them."""
    import traceback
    for wrong in (lambda: dist.broadcast(torch.zeros(3).to_sparse(), 0), lambda: dist.all_reduce(torch.zeros(2), group=7),
                  lambda: dist.new_group(ranks=[0, 99])):
        try:
            wrong()
        except Exception:
            traceback.print_exc()
    tensor = torch.ones(2)

    def deep(levels):
        return deep(levels - 1) if levels else dist.all_reduce(tensor)

    deep(20)
    print(tensor.tolist())
    if rank == 1:
        raise ValueError("the end of rank 1")


def os_exit(torch, dist, rank):
    dist.all_reduce(torch.ones(2))
    sys.stdout.flush()
    os._exit(3 + rank)


def threads(torch, dist, rank):
    import threading
    group = dist.new_group([0, 1])
    results = []

    def other():
        for _ in range(50):
            tensor = torch.ones(2)
            dist.all_reduce(tensor, group=group)
            results.append(tensor.tolist())

    thread = threading.Thread(target=other)
    thread.start()
    for _ in range(50):
        dist.broadcast(torch.ones(3), 0)
    thread.join()
    print(len(results), results[-1])


class Numbers:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        import torch
        return torch.tensor([index, os.getpid() != OWNER])


OWNER = os.getpid()


def data_loader(torch, dist, rank):
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2)
    for batch in loader:
        tensor = batch.sum(0)
        dist.all_reduce(tensor)
        print(tensor.tolist())


def interrupt(torch, dist, rank):
    import signal
    import time
    dist.all_reduce(torch.ones(2))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        print("interrupted")


def left_alone(torch, dist, rank):
    """What a program sees of torch and of the interpreter."""
    import copy
    import inspect
    import pickle
    import weakref
    from torch._C._distributed_c10d import ProcessGroup, Work
    for function in (dist.init_process_group, dist.new_group, dist.destroy_process_group):
        assert pickle.loads(pickle.dumps(function)) is function and copy.deepcopy(function) is function
        print(function.__name__, function.__qualname__, function.__module__, inspect.signature(function), inspect.isfunction(function),
              len(function.__doc__ or ""), len(inspect.getsource(function)), function.__code__.co_name, weakref.ref(function)() is function,
              repr(function).split(" at ")[0], hasattr(function, "__wrapped__"))
    for method in (ProcessGroup.allreduce, ProcessGroup.__dict__["allreduce"], Work.wait):
        print(repr(method).split(" at ")[0], method.__name__, method.__doc__.split("=")[0], method.__module__)
    print(dist.new_group is dist.distributed_c10d.new_group, repr(torch._C._c10d_init).split(" at ")[0])
    print(sys.path, sorted(set(os.environ) - {"LD_PRELOAD", "LOCKSTEP_DIR", "LOCKSTEP_RUN"}), len(sys.modules))
    print([getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path])


def run_rank(mode):
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    if mode == "swapped":
        rank = 1 - rank
        dist.init_process_group("gloo", rank=rank, world_size=2)
    else:
        dist.init_process_group("gloo")
    globals()[mode](torch, dist, rank)
    dist.destroy_process_group()


if "RANK" in os.environ:
    run_rank(sys.argv[1])
else:
    start_ranks(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2)
