"""The jobs of job.py on one torch after the other, each without and with the recorder: output and exit status are the same, and
`lockstep check` says of the trace what it has to say. Prints a table.

Usage: run.py LOCKSTEP LIBRARY RESULTS NAME=PYTHON...
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "torch"), str(HERE.parents[2] / "examples" / "torch_hangs")]
from gloo_lines import without_gloo
from launch import free_port

SHARED_OUTPUT = ("spawn", "forkserver")  # several processes write to the one of rank 0
EVERYWHERE = {  # job -> verdicts that fit
    "collectives,messages,groups,a_thread,errors": ("consistent",),
    "splitting": ("consistent",),
    "from_any": ("consistent", "insufficient"),
    "ddp": ("consistent",),
    "children": ("consistent",),
    "spawn": ("consistent",),
    "late": ("consistent",),
    "interrupt": ("consistent",),
    "exit": ("consistent", "insufficient"),  # os._exit: nobody says that a process which leaves so has ended
    "forkserver": ("consistent", "insufficient"),  # its children leave like that, too
    "exception": ("imbalance", "other_cause"),
    "kill": ("imbalance", "other_cause", "insufficient"),
    "without-torch": ("nothing",),
}
NEWEST = {"functional,meshes": ("consistent",), "fsdp2": ("consistent",), "pipelining": ("consistent",), "compiled": ("consistent",)}


def run_job(python, command, environment, seconds=240):
    """(status, standard output) of both ranks, and the error output of both."""
    port = str(free_port())
    ranks = []
    for rank in range(2):
        own = {**os.environ, **environment, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        ranks.append(subprocess.Popen([python, *command], env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"))
    results, errors = [], []
    for process in ranks:
        try:
            out, err = process.communicate(timeout=seconds)
            results.append((process.returncode, out))
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            results.append(("hangs", out))
        errors.append(err)
    return results, errors


def report_of(lockstep, folder):
    if not folder.exists():
        return {"verdict": "nothing", "findings": [], "input_quality": {"warnings": [], "complete": True}}
    done = subprocess.run([lockstep, "check", str(folder), "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if not done.stdout.startswith("{"):
        return {"verdict": f"exit {done.returncode}", "findings": [], "input_quality": {"warnings": [done.stderr[:200]], "complete": False}}
    return json.loads(done.stdout)


def check(lockstep, library, results, name, python, job, verdicts):
    folder = results / f"{name}.{job.replace(',', '+')}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [str(HERE / "job.py"), job]
    plain, plain_errors = run_job(python, command, {})
    seen, errors = run_job(python, command, {"LD_PRELOAD": str(library), "LOCKSTEP_DIR": str(folder / "trace")})
    for rank in range(2):
        (folder / f"plain.{rank}").write_text(f"{plain[rank][0]}\n{plain[rank][1]}\n{plain_errors[rank]}")
        (folder / f"seen.{rank}").write_text(f"{seen[rank][0]}\n{seen[rank][1]}\n{errors[rank]}")
    report = report_of(lockstep, folder / "trace")
    (folder / "report.json").write_text(json.dumps(report, indent=1))
    faults = []
    if job in SHARED_OUTPUT:
        plain, seen = ([(status, without_gloo(out)) for status, out in ranks] for ranks in (plain, seen))
    if plain != seen:
        faults.append("output or status differs: " + ", ".join(f"rank {rank} {a[0]} -> {b[0]}" for rank, (a, b) in enumerate(zip(plain, seen)) if a != b))
    fails = verdicts != ("nothing",) and job not in ("exception", "kill", "exit") and any(status != 0 for status, _ in plain)
    if fails:
        return name, job, "does not run", report, ["fails without us, too: " + " ".join(plain_errors[0].strip().splitlines()[-1:])[:80]]
    if report["verdict"] not in verdicts:
        faults.append(f"verdict {report['verdict']}, not {' or '.join(verdicts)}" + "".join(f"; {finding['title'][:90]}" for finding in report["findings"][:1]))
    if verdicts == ("consistent",) and not report["input_quality"]["complete"]:
        faults.append("the trace is not complete: " + "; ".join(report["input_quality"]["warnings"])[:160])
    lines = [line for err in errors for line in err.splitlines() if line.startswith("lockstep:")]
    if lines:
        faults.append("says: " + lines[0][:120])
    return name, job, "identical" if plain == seen else "DIFFERS", report, faults


def main():
    lockstep, library, results = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    tasks, failed = [], []
    environments = [argument.split("=", 1) for argument in sys.argv[4:]]
    only = os.environ.get("LOCKSTEP_MATRIX_JOBS", "").split()
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("LOCKSTEP_SCENARIOS_AT_ONCE", "2"))) as pool:
        for number, (name, python) in enumerate(environments):
            jobs = dict(EVERYWHERE, **(NEWEST if number + 1 == len(environments) else {}))
            for job, verdicts in jobs.items():
                if not only or job in only:
                    tasks.append(pool.submit(check, lockstep, library, results, name, python, job, verdicts))
        for task in tasks:
            name, job, same, report, faults = task.result()
            print(f"{name:10} {job:45} {same:12} {report['verdict']:12} {'; '.join(faults) or 'ok'}", flush=True)
            if faults:
                failed.append(f"{name} {job}")
    print("FAILED: " + ", ".join(failed) if failed else "all as they have to be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
