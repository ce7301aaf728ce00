"""Small torch programs with one mistake each, and with `--fixed` without it: fault_programs.py NAME [--fixed]. Ranks are started by launch.py of examples/torch_hangs."""
import os
import sys

import torch
import torch.distributed as dist

RANK = int(os.environ.get("RANK", "0"))
FIXED = "--fixed" in sys.argv


def step(group=None):
    loss = torch.ones(4) * RANK
    dist.all_reduce(loss, group=group)
    return loss


def split_sizes():
    """The second exchange of tokens: rank 1 has not heard of the new capacity and expects other shares than it is sent."""
    for round_number in range(2):
        shares = [3, 1] if round_number == 1 else [2, 2]
        expected = [shares[RANK], shares[RANK]]
        if round_number == 1 and RANK == 1 and not FIXED:
            expected = [2, 2]
        received = torch.zeros(sum(expected))
        dist.all_to_all_single(received, torch.ones(4) * RANK, output_split_sizes=expected, input_split_sizes=shares)
        step()


def subgroup_barrier():
    """Only the first rank of the group synchronises before it writes."""
    writers = dist.new_group([0, 1])
    step()
    if RANK < 2:
        if RANK == 0 or FIXED:
            dist.barrier(group=writers)
        step(writers)
    step()


def gather_shapes():
    """The last batch of rank 1 is shorter, and its scores are gathered as they are."""
    for batch in range(3):
        size = 3 if batch == 2 and RANK == 1 and not FIXED else 8
        scores = torch.ones(size)
        everyone = [torch.zeros(size) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, scores)
    step()


def swapped_peer():
    """A ring: rank 2 sends to the neighbour that it receives from."""
    size = dist.get_world_size()
    step()
    after, before = (RANK + 1) % size, (RANK - 1) % size
    if RANK == 2 and not FIXED:
        after = before
    received = torch.zeros(4)
    operations = [dist.P2POp(dist.isend, torch.ones(4), after), dist.P2POp(dist.irecv, received, before)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    step()


def objects_on_one_rank():
    """Rank 0 shares its vocabulary in a function that the others do not call."""
    step()
    if RANK == 0 or FIXED:
        dist.broadcast_object_list([{"words": 7}], src=0)
    step()


def died():
    """Rank 1 meets bad data and ends with an exception; nobody tells the others."""
    for number in range(3):
        if RANK == 1 and number == 2 and not FIXED:
            raise ValueError("bad data")
        step()


def group_of_one_side():
    """Rank 1 does not make the group of the others."""
    step()
    if RANK != 1 or FIXED:
        dist.new_group([0, 2])
    step()
    step()


def groups():
    """Nothing goes wrong."""
    pair, alone = dist.new_group([0, 1]), dist.new_group([0])
    for _ in range(20):
        step()
        step(pair)
    if RANK == 0:
        step(alone)


def foreign_backend():
    """Nothing goes wrong, but one group is of a backend that only this program knows."""
    def make(store, rank, size, timeout):
        return dist.ProcessGroupGloo(dist.PrefixStore("mine", store), rank, size, timeout)
    dist.Backend.register_backend("mine", make)
    step()
    dist.all_reduce(torch.ones(2), group=dist.new_group([0, 1], backend="mine"))
    step()


def main():
    dist.init_process_group("gloo")
    globals()[sys.argv[1]]()
    dist.destroy_process_group()  # torch 1.13 that ends without it aborts now and then, of itself
    print(f"rank {RANK} ends\n", end="", flush=True)  # in one piece: other ranks write there, too


main()
