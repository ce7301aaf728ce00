#!/usr/bin/env python3
"""A torch that is newer than any that was tried, made up (fake/), on every interpreter that is here: the program says what it says without the recorder,
and its trace says what of torch is not recorded, so that check never calls it consistent.
Usage: fake_torch_test.py LOCKSTEP LIBLOCKSTEP TRACE_DUMP FOLDER_OF_LIBTORCH_PYTHON INTERPRETER...

Interpreters that are not there are left out; older than 3.9 ones have no way to their frames, which must be said too."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent / "fake"
lockstep, library, dump, built = sys.argv[1:5]
standin = os.environ.get("LOCKSTEP_STANDIN", "")  # a folder with NCCL and the CUDA runtime of no GPU
nccl = pathlib.Path(built) if os.path.isfile(os.path.join(built, "nccl_backend.so")) and standin else None
problems = []


def run(python, environment):
    own = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "RANK": "0", "WORLD_SIZE": "1", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run([python, "program.py"], cwd=site, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


def expect(condition, *what):
    if not condition:
        problems.append(" ".join(map(str, what)))


def warnings_of(traces):
    done = subprocess.run([lockstep, "check", "--format", "json", str(traces)], stdout=subprocess.PIPE, universal_newlines=True, check=False)
    report = json.loads(done.stdout)
    expect(report["verdict"] != "consistent", "a trace that lacks calls is consistent")
    return " ".join(report["input_quality"]["warnings"])


def one_operation(python):
    """A call of a process group that NCCL carries out: one record, of NCCL, with the line of Python and the name of the group."""
    traces = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    environment = {"FAKE_NCCL": str(nccl / "nccl_backend.so"), "LD_LIBRARY_PATH": standin}
    alone = run(python, environment)
    seen = run(python, {**environment, "LD_PRELOAD": library, "LOCKSTEP_DIR": str(traces), "LOCKSTEP_RUN": "fake"})
    expect(alone[0] == 0 and "('allreduce', 0)" in alone[1], python, "does not run with NCCL:", alone)
    expect(alone == seen, python, "differs with NCCL:", alone, seen)
    for file in traces.glob("*/*.lst"):
        lines = subprocess.run([dump, str(file)], stdout=subprocess.PIPE, universal_newlines=True, check=False).stdout.splitlines()
        calls = [line for line in lines if re.match(r"call \d+ all_reduce ", line)]
        counts = [re.search(r"\[(\d+)\]", line).group(1) for line in calls]
        expect(counts == ["2", "2", "2", "1"], python, "all_reduces:", calls)
        expect(all("program.py:12(train)" in line for line in calls[:3]), python, "lines:", calls)
        comms = {re.search(r" comm=(\d+)", line).group(1) for line in calls}
        expect(len(comms) == 1, python, "communicators:", comms)
        shown = subprocess.run([lockstep, "show", "--format", "job", str(file)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True, check=False).stdout
        names = [name for name, identity in json.loads(shown)["group_ids"].items() if identity.startswith("nccl:")]
        expect(names == ["0"], python, "the communicator of NCCL has not the name of its process group:", names)


def try_one(python, version):
    for kind, said in (("many", "there is no _ZN"), ("few", "few of the known methods"), ("moved", "no module")):
        traces = pathlib.Path(tempfile.mkdtemp(dir=scratch))
        alone = run(python, {"FAKE_TORCH": kind})
        seen = run(python, {"FAKE_TORCH": kind, "LD_PRELOAD": library, "LOCKSTEP_DIR": str(traces), "LOCKSTEP_RUN": "fake"})
        expect(alone[0] == 0 and alone[1], python, kind, "does not run:", alone)
        expect(alone == seen, python, kind, "differs:", alone, seen)
        files = list(traces.glob("*/*.lst"))
        if version < (3, 9) or kind == "moved":
            continue  # nothing of torch was installed and no library was called: there is no trace
        expect(len(files) == 1, python, kind, "has", len(files), "traces")
        for file in files:
            text = subprocess.run([dump, str(file)], stdout=subprocess.PIPE, universal_newlines=True, check=False).stdout
            expect("program.py:" in text and "init" in text, python, kind, "has no lines of Python:", text[:2000])
            told = warnings_of(traces)
            expect(said in told, python, kind, "says:", told)
    if version >= (3, 9) and nccl is not None:
        one_operation(python)
    expect(run(python, {"LD_PRELOAD": library, "LOCKSTEP_PYTHON": "0", "LOCKSTEP_DIR": scratch}) == run(python, {}), python, "differs without the Python side")
    print("ok:", python, ".".join(map(str, version)), flush=True)


with tempfile.TemporaryDirectory() as scratch:
    site = pathlib.Path(scratch) / "site"
    shutil.copytree(str(HERE), str(site))
    for name in ("libtorch_python.so", "_C.so"):
        shutil.copy(str(pathlib.Path(built) / name), str(site / "torch"))
    tried = 0
    for interpreter in sys.argv[5:]:
        probe = subprocess.run([interpreter, "-c", "import sys; print(*sys.version_info[:2])"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True, check=False) \
            if os.access(interpreter, os.X_OK) else None
        version = tuple(map(int, probe.stdout.split())) if probe and probe.returncode == 0 else (0,)
        if version >= (3, 6):
            tried += 1
            try_one(interpreter, version)
for problem in problems:
    print(problem)
sys.exit(1 if problems else 77 if tried == 0 else 0)
