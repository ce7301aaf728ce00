#!/usr/bin/env python3
"""The plan that the reference optimizer prints for itself: `lockstep gate` says of it what the run then does, and `lockstep
conform` of every recorded run that completes finds it to do what the plan says.

Usage: gate_agrees.py LOCKSTEP PROGRAM MPIRUN LIBRARY [--all]    LIBRARY: liblockstep.so; --all: every partition, norm and
                                                                 precision, on several shapes
"""
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

NORMS = ("per_group", "fused", "agreed_groups")
PARTITIONS = ("type:embed", "type:transformer", "uniform", "parameters", "type:embed|transformer", "at:6")
PRECISIONS = ("fp32", "mixed", "fp64")
TWO, FOUR = ("--pipe", "2"), ("--pipe", "2", "--data", "2", "--micro-batches", "2")
# What else enters the calls: shape, reduce-scatter, a step that all skip.
MORE = (("--pipe", "1"), ("--pipe", "1", "--data", "3", "--reduce", "reduce_scatter"), ("--pipe", "3", "--partition", "parameters"),
        ("--pipe", "3", "--partition", "at:3,7", "--norm", "agreed_groups", "--precision", "mixed"), FOUR + ("--nan-step", "1", "--nan-rank", "3"),
        ("--pipe", "2", "--data", "2", "--reduce", "reduce_scatter", "--precision", "mixed", "--norm", "agreed_groups"),
        ("--pipe", "4", "--partition", "uniform", "--micro-batches", "1"), TWO + ("--hidden", "18", "--heads", "3", "--data", "2", "--norm", "agreed_groups"))
SAMPLE = (("per_group", "type:embed", "fp32"), ("per_group", "type:embed|transformer", "mixed"), ("per_group", "at:6", "fp64"),
          ("fused", "type:embed", "mixed"), ("agreed_groups", "type:embed", "fp32"), ("fused", "uniform", "fp64"))


def cases(everything):
    matrix = itertools.product(NORMS, PARTITIONS, PRECISIONS) if everything else SAMPLE
    for norm, partition, precision in matrix:
        yield (*TWO, "--norm", norm, "--partition", partition, "--precision", precision)
    yield from MORE
    if everything:
        for norm, partition in itertools.product(NORMS, PARTITIONS):
            yield (*FOUR, "--norm", norm, "--partition", partition)


def size(words, name):
    return int(words[words.index(name) + 1]) if name in words else 1


def main():
    lockstep, program, mpirun, library = sys.argv[1:5]
    everything = "--all" in sys.argv[5:]
    env = dict(os.environ, OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    failures = number = 0

    def out_of(*command, **options):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False, **options)

    for words in cases(everything):
        with tempfile.TemporaryDirectory() as scratch:
            plan, trace = pathlib.Path(scratch) / "plan.json", pathlib.Path(scratch) / "trace"
            plan.write_bytes(out_of(program, *words, "--print-plan").stdout)
            gate = out_of(lockstep, "gate", str(plan))
            ranks = size(words, "--pipe") * size(words, "--data")
            run = out_of(mpirun, "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "env", f"LD_PRELOAD={library}",
                         f"LOCKSTEP_DIR={trace}", program, *words, "--steps", "3", "--timeout", "5", env=env)
            hung = b"no step finished in time" in run.stderr
            if run.returncode != 0 and not hung:
                print(run.stderr.decode(errors="replace"))
            conform = None if hung else out_of(lockstep, "conform", str(trace), "--plan", str(plan))
            agrees = gate.returncode == (1 if hung else 0) and (hung or (run.returncode, conform.returncode) == (0, 0))
            if not agrees and conform:
                print(conform.stdout.decode(errors="replace"))
        verdict = gate.stdout.decode(errors="replace").split("  ")[0]
        said = "" if conform is None else "; " + conform.stdout.decode(errors="replace").rstrip().rsplit("\n", 1)[-1]
        print(f"{'ok' if agrees else 'FAILED':7} {' '.join(words):90} {'hangs' if hung else 'completes'}; gate {gate.returncode} "
              f"{verdict}{said}", flush=True)
        number += 1
        failures += not agrees
    print(f"{number} runs, {failures} that disagree")
    return 1 if failures or not number else 0


if __name__ == "__main__":
    sys.exit(main())
