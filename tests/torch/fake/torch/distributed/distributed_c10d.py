import os

from torch import _fake_c10d

_pg_map, _pg_names, _pg_group_ranks = {}, {}, {}


class GroupMember:
    WORLD = None


def make(ranks, name):
    group = _fake_c10d.ProcessGroup(ranks.index(int(os.environ["RANK"])), len(ranks))
    _pg_map[group], _pg_names[group], _pg_group_ranks[group] = ("gloo", None), name, {rank: place for place, rank in enumerate(ranks)}
    return group


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1):
    GroupMember.WORLD = make(list(range(int(os.environ["WORLD_SIZE"]))), "0")


def new_group(ranks=None, timeout=None, backend=None):
    return make(ranks, str(len(_pg_names)))


def all_reduce(tensor, group=None):
    group = group or GroupMember.WORLD
    return getattr(group, "allreduce" if hasattr(group, "allreduce") else "new_allreduce")([tensor]).wait()


def destroy_process_group(group=None):
    GroupMember.WORLD = None
