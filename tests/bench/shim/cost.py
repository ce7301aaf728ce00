#!/usr/bin/env python3
"""What the recorder costs, as figures: the parts of a call, start-up, and small messages between two ranks.

Runs with and without the recorder alternate in short blocks and their minima are compared: a busy machine slows both.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import tempfile
import time


def environment(preload, directory):
    env = {name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP")}
    env["LOCKSTEP_DIR"] = directory
    if preload:
        env["LD_PRELOAD"] = preload
    return env


def percentile(values, share):
    return sorted(values)[int(len(values) * share)]


def show_calls(bench, preload):
    """Whole calls through the preloaded library, to an MPI that returns at once."""
    p5 = {}
    for _ in range(3):
        for name, library in (("without", None), ("recording", preload)):
            with tempfile.TemporaryDirectory() as directory:
                out = subprocess.run([bench, "--benchmark_format=json", "--benchmark_min_time=0.1"], check=True,
                                     env=environment(library, directory), capture_output=True, text=True).stdout
            for row in json.loads(out[out.index("{"):])["benchmarks"]:
                p5.setdefault(row["name"], {}).setdefault(name, []).append(row["p5_ns"])
    for call, costs in p5.items():
        without, recording = min(costs["without"]), min(costs["recording"])
        print(f"{call:20} without {without:6.1f} ns, recording {recording:6.1f} ns, added {recording - without:6.1f} ns")


def show_start(host, preload, rounds):
    """From before fork and exec to the instant after the first call, or to the end of main without one."""
    for mode, what in (("call", "to the first recorded call"), ("quiet", "a process that never communicates")):
        times = {None: [], preload: []}
        wrote = 0
        for _ in range(rounds):
            for library in times:
                with tempfile.TemporaryDirectory() as directory:
                    traces = os.path.join(directory, "traces")
                    begin = time.monotonic_ns()
                    out = subprocess.run([host, mode, str(begin)], check=True, env=environment(library, traces),
                                         cwd=directory, capture_output=True, text=True).stdout
                    times[library].append(int(out) / 1e6)
                    if library:
                        wrote += len(os.listdir(directory))
        figures = [f"{name} {min(with_) - min(without):.2f}" if name == "min" else
                   f"{name} {percentile(with_, share) - percentile(without, share):.2f}"
                   for name, share in (("min", 0), ("p5", 0.05), ("p50", 0.5))
                   for with_, without in [(times[preload], times[None])]]
        print(f"start-up, {what}: {min(times[None]):.2f} ms without us, added {', '.join(figures)} ms; "
              f"{wrote} directories written in {rounds} runs")


def show_messages(name, launcher, program, preload, blocks):
    best = {}
    for _ in range(blocks):
        for library in (None, preload):
            with tempfile.TemporaryDirectory() as directory:
                preloaded = ["env", f"LD_PRELOAD={library}", f"LOCKSTEP_DIR={directory}/traces"] if library else ["env"]
                out = subprocess.run([*launcher, "-n", "2", *preloaded, program, "60"], check=True, env=environment(None, directory),
                                     capture_output=True, text=True, timeout=120).stdout
                if library and not glob.glob(f"{directory}/traces/**/*.lst", recursive=True):
                    raise SystemExit("nothing was recorded")
            for line in out.splitlines():
                call, p5, lowest = line.split("|")
                for what, value in (("p5", p5), ("min", lowest)):
                    key = (call, what)
                    best.setdefault(key, {}).setdefault(library, []).append(float(value))
    for (call, what), costs in best.items():
        without, recording = min(costs[None]), min(costs[preload])
        print(f"{name}, {call}: lowest {what} of {blocks} blocks: without {without:.0f} ns, recording {recording:.0f} ns, "
              f"ratio {recording / without:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--path-bench", required=True)
    parser.add_argument("--shim-bench", required=True)
    parser.add_argument("--startup-host", required=True)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--mpi", nargs="+", action="append", default=[], metavar="WORD", help="NAME PROGRAM LAUNCHER WORD...")
    args, _ = parser.parse_known_args()
    shutil.rmtree(os.path.join(tempfile.gettempdir(), "lockstep-path-bench"), ignore_errors=True)
    subprocess.run([args.path_bench], check=True)
    show_calls(args.shim_bench, args.library)
    show_start(args.startup_host, args.library, args.rounds)
    for name, program, *launcher in args.mpi:
        show_messages(name, [word.replace("@", "--", 1) for word in launcher], program, args.library, args.blocks)


if __name__ == "__main__":
    main()
