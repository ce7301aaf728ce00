"""Small jobs over gloo that hang, fail or run to the end, each with what is wrong with it, written down before any tool has looked.

A scenario is a function of one rank; what it does before and after its fault is what a training step does. `Truth` says what a right answer
is: the verdicts that fit, the ranks that are the cause, and which of the two kinds of evidence can show it.
"""
import dataclasses
import os
import sys
import time

import torch
import torch.distributed as dist

LATER = 60  # seconds: longer than any timeout of a group here


@dataclasses.dataclass
class Truth:
    """`dumps`, `logs` and `both`: what a report on that evidence has to give. "names": a verdict that fits, and the culprits. "hides": the
    evidence cannot show it, so that `insufficient` is right as well; a wrong verdict or an innocent rank never is. "blind": nothing of it is in
    the evidence, and the report has to say what is not recorded."""
    ranks: int                   # how many there are
    fault: str                   # in words; empty = none
    verdicts: tuple = ()         # that fit; none for a clean job
    culprits: tuple = ()
    dumps: str = "names"
    logs: str = "hides"
    both: str = "names"


SCENARIOS = {}


def scenario(truth, **environment):
    def keep(function):
        function.truth, function.environment = truth, environment
        SCENARIOS[function.__name__] = function
        return function
    return keep


def step(size=64, group=None):
    """Gradients, then a number that is logged."""
    dist.all_reduce(torch.ones(size), group=group)
    dist.all_reduce(torch.ones(1), group=group)


def end_of_epoch():
    dist.barrier()


@scenario(Truth(4, "rank 2 leaves one of the all-reduces out", ("imbalance", "mismatch"), (2,)))
def missing_call(rank):
    for number in range(6):
        dist.all_reduce(torch.ones(64))
        if not (rank == 2 and number == 3):
            dist.all_reduce(torch.ones(64))
    end_of_epoch()


# gloo ends the process that receives more than it expects, and a process that is ended so leaves no dump.
@scenario(Truth(4, "rank 2 leaves one of the larger all-reduces out", ("imbalance", "mismatch"), (2,), dumps="hides", both="hides"))
def missing_call_sizes(rank):
    for number in range(6):
        if not (rank == 2 and number == 3):
            dist.all_reduce(torch.ones(64))
        dist.all_reduce(torch.ones(1))
    end_of_epoch()


# A rank that is one call behind in dumps of one moment may be on its way: only what the log says shows that it was not.
@scenario(Truth(3, "rank 1 leaves out the last of a row of equal calls", ("imbalance",), (1,), dumps="hides", both="hides"))
def missing_call_at_the_end(rank):
    for number in range(5):
        if not (rank == 1 and number == 4):
            dist.all_reduce(torch.ones(64))
    if rank == 1:
        time.sleep(LATER)


@scenario(Truth(3, "rank 0 alone comes to a barrier before its checkpoint", ("imbalance", "mismatch"), (0,)))
def extra_call(rank):
    for number in range(4):
        step()
        if rank == 0 and number == 2:
            dist.barrier()
    end_of_epoch()


@scenario(Truth(3, "rank 0 makes two calls of one group the other way round", ("mismatch", "order"), (0,)))
def wrong_order(rank):
    step()
    first, second = torch.ones(32), torch.ones(8)
    if rank == 0:
        dist.broadcast(second, 1)
        dist.all_reduce(first)
    else:
        dist.all_reduce(first)
        dist.broadcast(second, 1)
    end_of_epoch()


@scenario(Truth(4, "rank 3 has another number of elements", ("mismatch",), (3,)))
def wrong_size(rank):
    step()
    dist.all_reduce(torch.ones(96 if rank == 3 else 64))
    end_of_epoch()


@scenario(Truth(3, "rank 2 has another element type", ("mismatch",), (2,)))
def wrong_type(rank):
    step()
    dist.all_reduce(torch.ones(64, dtype=torch.float64 if rank == 2 else torch.float32))
    end_of_epoch()


@scenario(Truth(4, "rank 1 calls another collective", ("mismatch",), (1,)))
def wrong_op(rank):
    step()
    step()
    if rank == 1:
        dist.all_gather([torch.ones(64) for _ in range(4)], torch.ones(64))
    else:
        dist.all_reduce(torch.ones(64))
    end_of_epoch()


@scenario(Truth(2, "ranks 0 and 1 use two groups in opposite order", ("deadlock", "order"), (0, 1)))
def groups_crossed(rank):
    model, data = dist.new_group([0, 1], group_desc="model"), dist.new_group([0, 1], group_desc="data")
    step(group=model)
    step(group=data)
    for group in ((model, data) if rank == 0 else (data, model)):
        dist.all_reduce(torch.ones(16), group=group)


@scenario(Truth(3, "three groups of two make a circle", ("deadlock", "order"), (0, 1, 2)))
def groups_in_a_circle(rank):
    groups = [dist.new_group([0, 1]), dist.new_group([1, 2]), dist.new_group([0, 2])]
    for number in ((0, 2), (0, 1), (1, 2))[rank]:
        step(group=groups[number])
    step()
    for number in {0: (0, 2), 1: (1, 0), 2: (2, 1)}[rank]:
        dist.all_reduce(torch.ones(16), group=groups[number])


@scenario(Truth(4, "rank 3 is done after two of five steps and leaves", ("imbalance", "other_cause"), (3,), dumps="hides", both="hides"))
def leaves_early(rank):
    for number in range(5):
        if rank == 3 and number == 2:
            sys.exit(0)
        step()
    end_of_epoch()


@scenario(Truth(3, "rank 1 dies of an exception in its data", ("other_cause", "imbalance"), (1,), dumps="hides", logs="names"))
def exception_first(rank):
    step()
    if rank == 1:
        raise ValueError("could not convert string to float: 'n/a'")
    step()
    end_of_epoch()


@scenario(Truth(3, "rank 2 is killed", ("imbalance", "other_cause"), (2,), dumps="hides", both="hides"))
def killed(rank):
    step()
    if rank == 2:
        os.kill(os.getpid(), 9)
    step()


@scenario(Truth(4, "rank 0 has one batch more than the others", ("imbalance",), (0,), dumps="hides", both="hides"))
def uneven_loop(rank):
    for _ in range(6 if rank == 0 else 5):
        dist.all_reduce(torch.ones(64))
    if rank != 0:
        time.sleep(LATER)


@scenario(Truth(2, "both ranks receive first; gloo records no messages", ("deadlock",), (0, 1), dumps="blind", both="hides"))
def messages_crossed(rank):
    step()
    dist.recv(torch.ones(64), 1 - rank)
    dist.send(torch.ones(64), 1 - rank)
    end_of_epoch()


@scenario(Truth(4, "rank 2 does not create the group that the others create", ("imbalance",), (2,), dumps="hides", both="hides"))
def group_on_some(rank):
    step()
    if rank != 2:
        dist.new_group([0, 1, 2, 3])
    step()


@scenario(Truth(4, "rank 0 evaluates alone and calls there", ("imbalance", "mismatch", "deadlock"), (0,)))
def evaluates_alone(rank):
    data = dist.new_group([0, 1, 2, 3], group_desc="data")
    for _ in range(3):
        step(group=data)
    if rank == 0:
        dist.all_reduce(torch.ones(7), group=data)
    step()
    end_of_epoch()


@scenario(Truth(2, "roots differ; no dump says a root", ("mismatch",), (0, 1), dumps="hides", both="hides"))
def wrong_root(rank):
    step()
    dist.broadcast(torch.ones(64), rank)
    end_of_epoch()


@scenario(Truth(4, ""))
def clean(rank):
    for _ in range(8):
        step()
    end_of_epoch()


@scenario(Truth(4, ""), TORCH_NCCL_ENABLE_TIMING="1", TORCH_FR_CPP_STACK="1")
def clean_with_timing(rank):
    for _ in range(8):
        step()
    end_of_epoch()


@scenario(Truth(4, ""), TORCH_FR_BUFFER_SIZE="8")
def clean_ring_wrapped(rank):
    pair = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
    for number in range(20):
        step()
        if rank < 2:
            dist.all_reduce(torch.ones(3), group=pair)
    end_of_epoch()


@scenario(Truth(4, ""))
def clean_every_call(rank):
    pairs = [dist.new_group([0, 1], group_desc="tensor"), dist.new_group([2, 3], group_desc="tensor")]
    x, four = torch.ones(8), [torch.ones(8) for _ in range(4)]
    dist.all_reduce(x, group=pairs[rank // 2])
    dist.all_gather(four, x)
    dist.all_gather_into_tensor(torch.ones(32), x)
    dist.reduce_scatter_tensor(torch.ones(2), x)
    dist.all_to_all_single(torch.ones(8), x)
    dist.reduce(x, 1)
    dist.gather(x, four if rank == 2 else None, 2)
    dist.scatter(x, four if rank == 3 else None, 3)
    dist.broadcast_object_list([{"epoch": 1}], 0)
    dist.all_gather_object([None] * 4, {"rank": rank})
    if rank % 2 == 0:
        dist.send(x, rank + 1)
    else:
        dist.recv(x, rank - 1)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, (rank + 1) % 4), dist.P2POp(dist.irecv, four[0], (rank - 1) % 4)]):
        work.wait()
    work = dist.all_reduce(x, async_op=True)
    dist.all_reduce(torch.ones(5))
    work.wait()
    dist.monitored_barrier()
    end_of_epoch()


@scenario(Truth(4, ""))
def clean_slow_data(rank):
    """Dumps are taken while one rank reads its data: no fault so far."""
    step()
    if rank == 3:
        time.sleep(float(os.environ["LOCKSTEP_DUMP_AFTER"]) + 1)
    step()
    end_of_epoch()


@scenario(Truth(4, ""))
def clean_uneven_groups(rank):
    """Pipeline stages that differ in their number of buckets, as they may."""
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    for _ in range(3):
        for bucket in range(2 + 3 * (rank // 2)):
            dist.all_reduce(torch.ones(16 + bucket), group=groups[rank // 2])
        step()
