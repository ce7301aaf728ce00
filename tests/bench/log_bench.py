#!/usr/bin/env python3
"""How fast text that says nothing about a hang is passed over, and how much memory a long log takes.

usage: log_bench.py LOCKSTEP [MEGABYTES] [--file]
Writes that much log (default 2000 MB) through a pipe, with a few telling lines in it, and prints MB/s of CPU time of the command and
its peak memory. `--file`: from a file in the temporary directory instead (then reading counts, and not the writer).
"""
import resource
import subprocess
import sys
import tempfile
import time

LINES = [
    " iteration {i:8d}/  500000 | consumed samples: {i:12d} | elapsed time per iteration (ms): 612.{i:03d} | learning rate: 1.5E-04 | lm loss: 2.{i:03d}E+00 | grad norm: 0.{i:03d} |\n",
    "INFO:trainer:step {i} done, 812.4 tokens/s per device, memory 41022 MB\n",
    "[2025-11-02 03:22:11,123] [INFO] [timer.py:{i}] epoch=3/micro_step={i}/global_step={i}, RunningAvgSamplesPerSec=11.02\n",
    "(Worker pid={i}) loading shard {i} of 96 took 0.2 s from /data/tokens/part-{i:05d}.bin\n",
]
TELLING = ("[rank{r}]:[E822 16:31:16.132545756 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, "
           "OpType=ALLREDUCE, NumelIn={n}, NumelOut={n}, Timeout(ms)=600000) ran for 600017 milliseconds before timing out.\n")


def blocks(size):
    block = "".join(LINES[i % len(LINES)].format(i=i % 1000) for i in range(100_000)).encode()
    given = 0
    while given < size:
        yield block
        given += len(block)
    yield "".join(TELLING.format(r=r, n=9 if r == 3 else 8) for r in range(8)).encode()


def main():
    numbers = [argument for argument in sys.argv[2:] if argument.isdigit()]
    size = int(numbers[0]) * 1_000_000 if numbers else 2_000_000_000
    command = [sys.argv[1], "check", "--format", "json"]
    started = time.monotonic()
    if "--file" in sys.argv:
        with tempfile.NamedTemporaryFile(suffix=".log") as log:
            for block in blocks(size):
                log.write(block)
            log.flush()
            started = time.monotonic()
            done = subprocess.run(command + [log.name], stdout=subprocess.PIPE)
            answer = done.stdout
    else:
        process = subprocess.Popen(command + ["-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for block in blocks(size):
            process.stdin.write(block)
        process.stdin.close()
        answer = process.stdout.read()
        process.wait()
    wall = time.monotonic() - started
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = usage.ru_utime + usage.ru_stime
    right = b'"verdict": "mismatch"' in answer
    print(f"{size / 1e6:.0f} MB: {cpu:.2f} s CPU, {size / 1e6 / cpu:.0f} MB/s of CPU time, {wall:.2f} s wall, peak {usage.ru_maxrss / 1024:.0f} MiB, verdict {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
