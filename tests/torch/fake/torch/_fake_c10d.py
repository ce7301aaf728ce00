"""What torch._C._c10d_init makes. FAKE_TORCH: "many" methods as torch has them, "few", or "moved" to another module."""
import ctypes
import os
import sys
import types

KIND = os.environ.get("FAKE_TORCH", "many")
NAMES = ["broadcast", "allreduce", "reduce", "allgather", "gather", "scatter", "reduce_scatter", "alltoall", "send", "recv", "barrier"]


BELOW = ctypes.PyDLL(os.environ["FAKE_NCCL"]) if "FAKE_NCCL" in os.environ else None  # holds the interpreter's lock, as a method of torch does


def method(name):
    def call(self, *arguments):
        if BELOW is not None and name == "allreduce":
            return Work((name, BELOW.fake_all_reduce(len(arguments[0][0]))))
        return Work((name, len(arguments)))
    call.__name__ = name
    return call


class Work:
    def __init__(self, what):
        self.what = what

    def wait(self):
        return self.what


class ProcessGroupGloo:
    pass


class ProcessGroup:
    def __init__(self, rank, size):
        self.place = rank, size

    def rank(self):
        return self.place[0]

    def size(self):
        return self.place[1]


for known in NAMES:
    setattr(ProcessGroup, known if KIND != "few" else "new_" + known, method(known))
if KIND == "many":
    Backend = type("Backend", (), {name: method(name) for name in NAMES})

module = types.ModuleType("torch._C._distributed_c10d")
for cls in (Work, ProcessGroup) if KIND == "few" else (Work, ProcessGroupGloo, ProcessGroup):
    setattr(module, cls.__name__, cls)
if KIND == "many":
    module.Backend = Backend
sys.modules["torch._C._c10d" if KIND == "moved" else module.__name__] = module
