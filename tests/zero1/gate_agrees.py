#!/usr/bin/env python3
"""`lockstep gate` on the plan that the reference optimizer prints for itself says what the run then does.

Usage: gate_agrees.py LOCKSTEP PROGRAM MPIRUN. Exit code 77 where this lockstep has no gate.
"""
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

NORMS = ("per_group", "fused", "agreed_groups")
PARTITIONS = ("type:embed", "type:transformer", "uniform", "parameters", "type:embed|transformer", "at:6")
HUNG = 75


def main():
    lockstep, program, mpirun = sys.argv[1:4]
    if b" gate " not in subprocess.run([lockstep, "help"], stdout=subprocess.PIPE, check=False).stdout:
        print("skipped: this lockstep has no gate")
        return 77
    env = dict(os.environ, OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        plan = pathlib.Path(scratch) / "plan.json"
        for norm, partition in itertools.product(NORMS, PARTITIONS):
            hung = None
            for precision in ("fp32", "mixed", "fp64"):
                words = ["--norm", norm, "--partition", partition, "--precision", precision]
                plan.write_bytes(subprocess.run([program, *words, "--print-plan"], stdout=subprocess.PIPE, check=True).stdout)
                gate = subprocess.run([lockstep, "gate", str(plan)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                                      check=False)
                if precision == "fp64" and hung is not None:
                    pass  # the element type does not enter the calls: the runs of the two others speak for it
                else:
                    run = subprocess.run([mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2", program, *words, "--steps", "3",
                                          "--timeout", "4"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, timeout=60, check=False)
                    hung = run.returncode != 0
                    if hung and b"no step finished in time" not in run.stderr:
                        print(run.stderr.decode(errors="replace"))
                        failures += 1
                agrees = (gate.returncode == 1) if hung else (gate.returncode == 0)
                first = gate.stdout.decode(errors="replace").splitlines()[:1]
                print(f"{'ok' if agrees else 'FAILED':7} {norm:14} {partition:23} {precision:6} "
                      f"{'hangs' if hung else 'completes'}; gate {gate.returncode}: {first}")
                failures += not agrees
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
