#!/usr/bin/env python3
"""A clean job of torch whose recording lacks something is never consistent: a rank without a trace, a trace that was cut, no Python side, a backend that is
not recorded. The whole recording is consistent. Usage: incomplete.py LOCKSTEP LIBLOCKSTEP"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LAUNCH = HERE.parents[1] / "examples" / "torch_hangs" / "launch.py"
PYTHON = "/usr/bin/python3"
lockstep, library = sys.argv[1:3]
problems = []


def record(traces, name, **environment):
    own = {key: value for key, value in os.environ.items() if not key.startswith(("LOCKSTEP", "TORCH"))}
    own.update(LD_PRELOAD=library, LOCKSTEP_DIR=str(traces), LOCKSTEP_RING="256k", LOCKSTEP_RUN="run", **environment)
    done = subprocess.run([PYTHON, str(LAUNCH), "2", str(HERE / "fault_programs.py"), name, "--fixed"], env=own, capture_output=True, text=True, check=False, timeout=400)
    if done.returncode != 0:
        problems.append("%s does not run: %s" % (name, done.stderr[-500:]))


def expect(what, traces, consistent):
    done = subprocess.run([lockstep, "check", str(traces)], capture_output=True, text=True, check=False)
    if done.stdout.startswith("CONSISTENT") != consistent or (done.returncode == 0) != consistent:
        problems.append("%s: status %d\n%s%s" % (what, done.returncode, done.stdout, done.stderr))
    print(what + ":", done.stdout.split("\n")[0], flush=True)


def main():
    if subprocess.run([PYTHON, "-c", "import torch.distributed as d; assert d.is_available()"], capture_output=True, check=False).returncode != 0:
        print("skipped: no torch with torch.distributed for " + PYTHON)
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        whole = pathlib.Path(scratch) / "whole"
        record(whole, "groups")
        expect("whole", whole, True)
        files = sorted(file.relative_to(whole) for file in whole.glob("*/*.lst"))
        for number, file in enumerate(files):
            lacking = pathlib.Path(scratch) / ("without%d" % number)
            shutil.copytree(whole, lacking)
            (lacking / file).unlink()
            expect("without trace %d" % number, lacking, False)
            size = (whole / file).stat().st_size
            for share in (0, 1, 5, 20, 40, 60, 80, 95):
                cut = pathlib.Path(scratch) / ("cut%d.%d" % (number, share))
                shutil.copytree(whole, cut)
                os.truncate(cut / file, size * share // 100)
                expect("trace %d cut to %d %%" % (number, share), cut, False)
        for name, environment in (("no_python", {"LOCKSTEP_PYTHON": "0"}), ("foreign_backend", {})):
            traces = pathlib.Path(scratch) / name
            record(traces, "foreign_backend" if name == "foreign_backend" else "groups", **environment)
            expect(name, traces, False)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
