#!/usr/bin/python3
"""Small Jobs run for real, over MPI and over the stand-in for NCCL: those that are right end with right data, the others hang.

Usage: job_runner_test.py JOB_RUNNER OVER      OVER: nccl, openmpi or mpich
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUNNER, OVER = sys.argv[1:3]
ENDED, FAILED, UNREADABLE, HUNG = 0, 1, 3, 10

WORLD = {"world": [0, 1, 2]}
TWO = {"a": [0, 1, 2], "b": [0, 1, 2]}
RING = ["batch[isend 1 world f32[V*h]; irecv 2 world f32[V*h]]", "batch[isend 2 world f32[V*h]; irecv 0 world f32[V*h]]",
        "batch[isend 0 world f32[V*h]; irecv 1 world f32[V*h]]"]

# name: (groups, lines by rank, ends, {library: exit})
BOTH = lambda code: {"nccl": code, "mpi": code}  # noqa: E731
JOBS = {
    "all_collectives": (WORLD, [["all_reduce world f32[100] redop=sum", "broadcast world i64[7] root=2", "reduce world f64[3] root=1",
                                 "all_gather world u32[9]", "reduce_scatter world i32[11] redop=max", "all_to_all world f32[5]",
                                 "gather world f32[2] root=1", "scatter world f32[4] root=2", "barrier world"]] * 3, {}, BOTH(ENDED)),
    "large": (WORLD, [["all_reduce world f32[1000000]", "broadcast world u8[70001] root=1"]] * 3, {}, BOTH(ENDED)),
    "symbols": (WORLD, [["all_reduce world f32[V*h/tp]", "all_reduce world f32[h]"]] * 3, {}, BOTH(ENDED)),
    "other_symbol": (WORLD, [["broadcast world f32[V*h] root=0", "barrier world"], ["broadcast world f32[V*h] root=0", "barrier world"],
                             ["broadcast world f32[h] root=0", "barrier world"]], {}, {"nccl": HUNG}),
    "call_left_out": (WORLD, [["all_reduce world f32[1]"] * 3, ["all_reduce world f32[1]"] * 2, ["all_reduce world f32[1]"] * 3], {},
                      BOTH(HUNG)),
    "order_swapped": (WORLD, [["all_reduce world f32[1]", "broadcast world f32[1] root=0", "barrier world"],
                              ["broadcast world f32[1] root=0", "all_reduce world f32[1]", "barrier world"],
                              ["all_reduce world f32[1]", "broadcast world f32[1] root=0", "barrier world"]], {}, {"nccl": HUNG}),
    "two_communicators_in_order": (TWO, [["all_reduce a f32[1]", "all_reduce b f32[1]"]] * 3, {}, BOTH(ENDED)),
    "two_communicators_crossed": (TWO, [["barrier a", "barrier b"], ["barrier b", "barrier a"], ["barrier a", "barrier b"]], {}, BOTH(HUNG)),
    "two_communicators_on_two_streams": (TWO, [["all_reduce a f32[1] stream=x", "all_reduce b f32[1] stream=y"],
                                               ["all_reduce b f32[1] stream=y", "all_reduce a f32[1] stream=x"],
                                               ["all_reduce a f32[1] stream=x", "all_reduce b f32[1] stream=y"]], {}, BOTH(ENDED)),
    "host_wait_between": (TWO, [["all_reduce a f32[1] stream=x", "stream_sync stream=x", "all_reduce b f32[1] stream=y"],
                                ["all_reduce b f32[1] stream=y", "stream_sync stream=y", "all_reduce a f32[1] stream=x"],
                                ["all_reduce a f32[1] stream=x", "device_sync", "all_reduce b f32[1] stream=y"]], {}, {"nccl": HUNG}),
    "event_between_streams": (TWO, [["all_reduce a f32[1] stream=x", "event_record handle=e stream=x", "stream_wait handle=e stream=y",
                                     "all_reduce b f32[1] stream=y", "event_sync handle=e"]] * 3, {}, {"nccl": ENDED}),
    "wait_by_handle": (WORLD, [["all_reduce world f32[8] handle=h", "compute", "wait handle=h", "barrier world"]] * 3, {}, BOTH(ENDED)),
    "wait_for_ever": (WORLD, [["all_reduce world f32[8] handle=h", "wait handle=h"]] * 2 + [[]], {}, BOTH(HUNG)),
    "ring": (WORLD, [[line] for line in RING], {}, BOTH(ENDED)),
    "ring_of_receives": (WORLD, [["recv 2 world f32[1]", "send 1 world f32[1]"], ["recv 0 world f32[1]", "send 2 world f32[1]"],
                                 ["recv 1 world f32[1]", "send 0 world f32[1]"]], {}, BOTH(HUNG)),
    "message_left_out": (WORLD, [["send 1 world f32[1]"], ["recv 0 world f32[1]", "recv 0 world f32[1]"], []], {}, BOTH(HUNG)),
    "group_brackets": (WORLD, [["group_start", f"send {(r + 1) % 3} world f32[3]", f"recv {(r + 2) % 3} world f32[3]",
                                "all_reduce world f32[2]", "group_end"] for r in range(3)], {}, {"nccl": ENDED}),
    "split": (WORLD, [[f"split world color={r % 2} key={r}", "all_reduce world f32[1]"] for r in range(3)], {}, BOTH(ENDED)),
    "split_left_out": (WORLD, [["split world color=0"], ["split world color=0"], []], {}, BOTH(HUNG)),
    "init_by_line": ({"world": [0, 1, 2], "late": [0, 1]}, [["all_reduce world f32[1]", "init late", "all_reduce late f32[1]"]] * 2 +
                     [["all_reduce world f32[1]"]], {}, {"nccl": ENDED}),
    "init_left_out": ({"late": [0, 1]}, [["init late"], []], {}, {"nccl": HUNG}),
    "init_of_other_sizes": ({"late": [0, 1, 2]}, [["init late counts=3"], ["init late counts=2"], ["init late counts=3"]], {}, {"nccl": HUNG}),
    "shrink": ({"world": [0, 1, 2], "rest": [0, 2]}, [["all_reduce world f32[4]", "shrink world exclude=1", "all_reduce rest f32[2]"],
               ["all_reduce world f32[4]"], ["all_reduce world f32[4]", "shrink world members=0,2", "all_reduce rest f32[2]"]], {}, {"nccl": ENDED}),
    "shrink_left_out": (WORLD, [["shrink world exclude=1"], [], []], {}, {"nccl": HUNG}),
    "shrink_of_other_ranks": (WORLD, [["shrink world exclude=1"], [], ["shrink world members=2"]], {}, {"nccl": HUNG}),
    "grow": ({"two": [0, 1], "world": [0, 1, 2]}, [["all_reduce two f32[4]", "grow world", "all_reduce world f32[2]"]] * 2 +
             [["grow world", "all_reduce world f32[2]"]], {}, {"nccl": ENDED}),
    "grow_left_out": ({"two": [0, 1], "world": [0, 1, 2]}, [["grow world"], ["grow world"], []], {}, {"nccl": HUNG}),
    "signals": (WORLD, [["window_register world", f"put_signal world f32[64] peer={(r + 1) % 3}", f"signal world peer={(r + 1) % 3}",
                         f"wait_signal world [2] peer={(r + 2) % 3}", "stream_sync", "all_reduce world f32[1]"] for r in range(3)], {},
                {"nccl": ENDED}),
    "signal_missing": ({"two": [0, 1]}, [["signal two peer=1"], ["wait_signal two [2]"]], {}, {"nccl": HUNG}),
    "put_without_window": ({"two": [0, 1]}, [["put_signal two f32[4] peer=1"], []], {}, {"nccl": FAILED}),
    "revoked": (WORLD, [["all_reduce world f32[4]", "device_sync", "revoke world", "abort world"]] * 3, {}, {"nccl": ENDED}),
    "exit_status": (WORLD, [["barrier world"], ["barrier world"], ["barrier world", "exit 3"]], {}, {"nccl": ENDED}),
    "killed": (WORLD, [["barrier world", "barrier world"]] * 2 + [["barrier world"]], {"2": "killed 9"}, {"nccl": HUNG}),
    "threads": (TWO, [["all_reduce a f32[1] stream=x thread=t1", "all_reduce b f32[1] stream=y thread=t2"]] * 3, {}, {"nccl": ENDED}),
    "no_such_call": (WORLD, [["scan world f32[1]"]] * 3, {}, {"nccl": UNREADABLE, "mpi": ENDED}),
}

# Calls of both libraries in one program, as MPI starts it.
BEFORE = ["broadcast world u8[128] root=0", "all_reduce grads f32[8] stream=s", "stream_sync stream=s", "barrier world"]
BEHIND = ["broadcast world u8[128] root=0", "barrier world", "all_reduce grads f32[8] stream=s", "stream_sync stream=s"]
UNWAITED = ["all_reduce grads f32[8] stream=s", "isend {next} world f32[4] handle=h", "irecv {last} world f32[4] handle=r", "wait handle=h",
            "wait handle=r", "stream_sync stream=s"]
MIXED = {
    "both_in_order": ([BEFORE] * 3, ENDED),
    "both_crossed": ([BEFORE, BEHIND, BEFORE], HUNG),
    "both_not_waited_for": ([[line.format(next=(r + 1) % 3, last=(r + 2) % 3) for line in UNWAITED] for r in range(3)], ENDED),
    "both_crossed_on_the_device_alone": ([["all_reduce grads f32[8] stream=s", "barrier world"], ["barrier world", "all_reduce grads f32[8] stream=s"],
                                          ["barrier world", "all_reduce grads f32[8] stream=s"]], ENDED),
}


class JobRunner(unittest.TestCase):
    pass


def add_test(name, groups, lines, ends, expected, more=None):
    def test(self):
        job = {"schema": "lockstep-job/1", "groups": groups, "library": "nccl" if OVER == "nccl" else "mpi",
               "ranks": {str(rank): calls for rank, calls in enumerate(lines)}, "ends": ends, **(more or {})}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "job.json"
            path.write_text(json.dumps(job), encoding="utf-8")
            over = ["--over", "nccl"] if OVER == "nccl" else ["--over", "mpi", "--mpi", OVER]
            done = subprocess.run([RUNNER, *over, "--timeout", "2" if expected == HUNG else "30", path], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=100, check=False)
        text = done.stdout.decode("utf-8", "replace")
        self.assertEqual(done.returncode, expected, text)
        if expected == HUNG:
            self.assertRegex(text, r"rank \d: (line|behind|makes)")
    setattr(JobRunner, f"test_{name}", test)


for job_name, (job_groups, job_lines, job_ends, exits) in JOBS.items():
    library = "nccl" if OVER == "nccl" else "mpi"
    if library in exits:
        add_test(job_name, job_groups, job_lines, job_ends, exits[library])

for job_name, (job_lines, job_exit) in MIXED.items():
    if OVER != "nccl":
        add_test(job_name, {"world": [0, 1, 2], "grads": [0, 1, 2]}, job_lines, {}, job_exit, {"library": "nccl", "libraries": {"world": "mpi"}})

unittest.main(argv=sys.argv[:1])
