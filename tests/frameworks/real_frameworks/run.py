"""Published frameworks, unmodified, on the CPU: each program of this folder without and with the recorder. Standard output and exit status must be the same, no line on
standard error may be ours, the traces complete, `lockstep check` consistent and without a finding above `unsafe`. Prints a table.

Usage: run.py LOCKSTEP LIBRARY RESULTS PYTHON
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "examples" / "torch_hangs"))
from launch import free_port

SECONDS = 900
MILD = ("unsafe", "note")


def torchrun(ranks, script, *arguments):
    return ["-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--master-port", "PORT", str(HERE / script), *arguments]


def accelerate(ranks, script):
    """More than one process on the CPU: by mpirun."""
    return ["-m", "accelerate.commands.accelerate_cli", "launch", "--cpu", "--num_processes", str(ranks), "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no",
            "--mpirun_hostfile", str(HERE / "hosts"), "--main_process_port", "PORT", str(HERE / script)]


# name -> (ranks, command, environment)
JOBS = {
    "megatron": (4, torchrun(4, "megatron_pipeline.py"), {}),
    "megatron-batched": (4, torchrun(4, "megatron_pipeline.py"), {"BATCHED": "1"}),
    "accelerate": (2, torchrun(2, "accelerate_loop.py"), {}),
    "accelerate-launch": (2, accelerate(2, "accelerate_loop.py"), {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}),
    "fsdp2": (2, torchrun(2, "fsdp2_step.py"), {}),
    "fsdp2-replicated": (4, torchrun(4, "fsdp2_step.py"), {}),
}


def run(python, command, environment, folder):
    """(exit status, sorted lines of standard output), and standard error. Lines of several ranks come in any order."""
    folder.mkdir(parents=True)
    port = str(free_port())
    words = [python, *(port if word == "PORT" else word for word in command)]
    own = {**os.environ, **environment, "TMPDIR": str(folder)}
    with open(folder / "out", "w+") as out, open(folder / "err", "w+") as err:
        try:
            status = subprocess.run(words, env=own, cwd=folder, stdout=out, stderr=err, timeout=SECONDS, check=False).returncode
        except subprocess.TimeoutExpired:
            status = "hangs"
    return (status, sorted((folder / "out").read_text(errors="replace").splitlines())), (folder / "err").read_text(errors="replace")


def report_of(lockstep, trace):
    done = subprocess.run([lockstep, "check", str(trace), "--format", "json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout.startswith("{") else None


def check(lockstep, library, results, python, name):
    ranks, command, environment = JOBS[name]
    folder = results / name
    shutil.rmtree(folder, ignore_errors=True)
    plain, plain_err = run(python, command, environment, folder / "plain")
    seen, seen_err = run(python, command, {**environment, "LD_PRELOAD": library, "LOCKSTEP_DIR": str(folder / "trace")}, folder / "seen")
    if plain[0] != 0:
        return name, "does not run here without us either: " + (plain_err.strip().splitlines() or ["no message"])[-1][:100], ["it does not run"]
    faults = []
    if plain != seen:
        faults.append(f"output or status differs: {plain[0]} -> {seen[0]}; " + "; ".join(sorted(set(seen[1]) ^ set(plain[1])))[:200])
    if not any(line for line in plain[1]):
        faults.append("it prints nothing")
    faults += ["says: " + line[:120] for line in seen_err.splitlines() if line.startswith("lockstep:")][:1]
    report = report_of(lockstep, folder / "trace")
    if report is None:
        return name, "no report", faults + ["no trace that can be read"]
    (folder / "report.json").write_text(json.dumps(report, indent=1))
    quality = report["input_quality"]
    if report["verdict"] != "consistent":
        faults.append("verdict " + report["verdict"])
    faults += [f"{finding['severity']} {finding['class']}: {finding['title'][:100]}" for finding in report["findings"] if finding["severity"] not in MILD]
    if not quality["complete"] or len(quality["ranks_seen"]) != ranks:
        faults.append(f"traces of {quality['ranks_seen']} of {ranks} ranks: " + "; ".join(quality["warnings"])[:200])
    return name, f"{len(plain[1])} lines identical, {report['verdict']}, {len(report['findings'])} findings", faults


def main():
    lockstep, library, results, python = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4]
    only = os.environ.get("LOCKSTEP_REAL_JOBS", "").split()
    failed = []
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("LOCKSTEP_SCENARIOS_AT_ONCE", "1"))) as pool:
        tasks = [pool.submit(check, lockstep, library, results, python, name) for name in JOBS if not only or name in only]
        for task in tasks:
            name, told, faults = task.result()
            print(f"{name:18} {told}  {'; '.join(faults) or 'ok'}", flush=True)
            failed += [name] * bool(faults)
    print("FAILED: " + ", ".join(failed) if failed else "all as they have to be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
