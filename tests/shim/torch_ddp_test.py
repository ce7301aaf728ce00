"""DistributedDataParallel under the recorder: torch_ddp_test.py LIBRARY TRACE_DUMP BUCKETS.json. Every all-reduce of 20 iterations must be the bucket
that torch itself reported to a communication hook (two ranks, gloo; what the file has for its last iteration holds for all later ones), and the
program must end as it does without us. Exit status 77: it cannot be tried here."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hosts", "torch_host.py")
PYTHON = "/usr/bin/python3"
ITERATIONS = 20
BUCKET = re.compile(r"all_reduce .*torch\.float32\[(\d+)\].*:0\(DistributedDataParallel bucket (\d+) of (\d+)\)")


def run(case, library, traces):
    environment = dict(os.environ, DDP_CASE=json.dumps(dict(case, iterations=ITERATIONS, log=None)))
    if library:
        environment.update(LD_PRELOAD=library, LOCKSTEP_DIR=traces, LOCKSTEP_RUN="ddp")
    out = subprocess.run([PYTHON, HOST, "ddp_case"], env=environment, capture_output=True, text=True, timeout=280).stdout
    return [line for line in out.splitlines() if not re.match(r"WARNING: Logging|W\d{8} ", line)]  # they hold times


def recorded(dump, traces):
    """By rank: the counts of each iteration; an iteration begins with bucket 1. And all lines."""
    passes, totals, lines = {}, {}, {}
    for path in glob.glob(f"{traces}/*/*.lst"):
        out = subprocess.run([dump, path], capture_output=True, text=True, check=True).stdout
        rank = re.search(r"^rank (\d+) of 2", out, re.MULTILINE).group(1)
        lines[rank] = out.splitlines()
        passes[rank] = []
        for count, number, of in (found.groups() for found in map(BUCKET.search, lines[rank]) if found):
            if number == "1":
                passes[rank].append([])
                totals.setdefault(rank, []).append(int(of))
            assert int(of) == totals[rank][-1], f"bucket {number} of {of} in a pass of {totals[rank][-1]}"
            assert int(number) == len(passes[rank][-1]) + 1, f"bucket {number} out of order"
            passes[rank][-1].append(int(count))
        assert totals[rank] == [len(one) for one in passes[rank]], f"{totals[rank]} buckets are named, {passes[rank]} are reduced"
    return passes, lines


def check(case, library, dump):
    with tempfile.TemporaryDirectory() as traces:
        alone, with_us = run(case, None, None), run(case, library, traces)
        passes, lines = recorded(dump, traces)
    assert alone == with_us, f"the program says something else: {alone} {with_us}"
    for rank, log in case["log"].items():
        expected = [[bucket["numel"] for bucket in iteration["buckets"]] for iteration in log]
        expected += [expected[-1]] * (ITERATIONS - len(expected))
        assert passes[rank] == expected, f"rank {rank}: {passes[rank]} instead of {expected}"
        rebuilds = sum("broadcast" in line and "(rebuild)" in line for line in lines[rank])
        changes = sum(a != b for a, b in zip(expected, expected[1:]))
        assert (rebuilds > 0) == (changes > 0 or (not case.get("find_unused") and len(set(map(tuple, expected))) > 1)), rebuilds
        assert not any("ENTERED" in line or "PROBLEM" in line for line in lines[rank])
        if case.get("find_unused"):
            assert sum("unused-parameter map" in line and "all_reduce" in line for line in lines[rank]) == ITERATIONS


def main():
    library, dump, golden = sys.argv[1:4]
    if not os.path.exists(golden):
        print("skipped: no such file:", golden)
        return 77
    if subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True).returncode != 0:
        print("skipped: no torch for", PYTHON)
        return 77
    with open(golden, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    for case in cases:
        check(case, library, dump)
        print("ok:", case["name"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
