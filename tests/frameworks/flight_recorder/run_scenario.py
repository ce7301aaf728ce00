"""Runs one scenario on all its ranks (forked from one process, which has imported torch once), leaves dumps and what was printed.

Usage: run_scenario.py FOLDER SCENARIO...; in FOLDER/SCENARIO: hanging/rank_<N> (dumps taken at one moment of the run, by a thread, as a
signal handler would), failed/rank_<N> (those that ranks wrote when an exception ended them), job.log (all standard error output).
"""
import datetime
import os
import pathlib
import sys
import threading
import time
import traceback

import torch
import torch.distributed as dist

import scenarios

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "examples" / "torch_hangs"))
from launch import free_port

DUMP_AFTER = float(os.environ.setdefault("LOCKSTEP_DUMP_AFTER", "5"))
TIMEOUT = DUMP_AFTER + 7  # of the groups


def write_dump(path):
    data = torch._C._distributed_c10d._dump_fr_trace(True, True, False)
    path.with_suffix(".part").write_bytes(data)
    path.with_suffix(".part").rename(path)


def be_rank(rank, function, folder, port):
    log = os.open(folder / "job.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 2)
    os.dup2(log, 1)
    os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(function.truth.ranks), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(port), "TORCH_FR_BUFFER_SIZE": "2000", **function.environment})
    torch.set_num_threads(1)
    status = 0
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=TIMEOUT))
    due = time.monotonic() + DUMP_AFTER

    def dump_when_due():
        time.sleep(max(0.0, due - time.monotonic()))
        write_dump(folder / "hanging" / f"rank_{rank}")

    dumper = threading.Thread(target=dump_when_due, daemon=True)
    dumper.start()
    try:
        function(rank)
        dumper.join()
        dist.destroy_process_group()
    except SystemExit:
        pass
    except BaseException:  # what the interpreter prints, with the mark that torch puts before it
        for line in traceback.format_exc().splitlines():
            print(f"[rank{rank}]: {line}", file=sys.stderr)
        write_dump(folder / "failed" / f"rank_{rank}")
        status = 1
    sys.stderr.flush()
    os._exit(status)


def start(name, folder):
    function = scenarios.SCENARIOS[name]
    for sub in ("hanging", "failed"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    port = free_port()
    pids = []
    for rank in range(function.truth.ranks):
        pid = os.fork()
        if pid == 0:
            be_rank(rank, function, folder, port)
        pids.append(pid)
    return pids


def main():
    root = pathlib.Path(sys.argv[1])
    running, names = {}, list(sys.argv[2:])
    at_once = int(os.environ.get("LOCKSTEP_SCENARIOS_AT_ONCE", "6"))
    while names or running:
        while names and len(running) < at_once:
            name = names.pop(0)
            running[name] = (start(name, root / name), time.monotonic() + TIMEOUT + 60)
        time.sleep(0.2)
        for name, (pids, deadline) in list(running.items()):
            left = []
            for pid in pids:
                if time.monotonic() > deadline:
                    os.kill(pid, 9)
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    left.append(pid)
            running[name] = (left, deadline)
            if not left:
                del running[name]


if __name__ == "__main__":
    main()
