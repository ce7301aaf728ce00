#!/usr/bin/env python3
"""Runs the programs of this folder for real under the recorder, until they hang or end, and checks what was recorded.

usage: live.py LOCKSTEP JOB_RUNNER LIBRARY [--seconds N] [--all | NAME...]      LIBRARY: liblockstep.so

Without a name: the sample below. Those of NCCL and torch run on the stand-in for NCCL, those of MPI, and what torch does with MPI alone,
under Open MPI. Groups of a recorded run have other names, so the group is
compared by its members; its making is a recorded call, so positions are one higher. Under MPI a rank that goes on to its end waits there for the
others, in MPI_Finalize: what is an imbalance in the written program is a deadlock then. A host that stands in a wait may still make the
call that the written program leaves out: all that is recorded is a cycle, which names more ranks, and is counted by itself. Programs that job_runner cannot run (calls that the library does not have) are listed and not counted.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ENDED, UNREADABLE, HUNG = 0, 3, 10

# One of each kind: calls, messages, communicators, host waits, graphs, device order.
SAMPLE = ("given_015", "given_040", "given_046", "given_061", "given_071", "given_075", "given_087", "own_bucket_order",
          "own_gather_v_counts", "own_graph_launched_less", "own_grow_not_joined", "own_signal_missing", "own_implicit_order", "own_init_same_rank",
          "own_mpi_barrier_before_nccl", "own_new_group_on_members_only", "own_refused_call", "own_init_other_size",
          "own_shrink_other_lists", "own_roots_of_one_group", "own_ring_blocking_sends", "own_root_outside_group",
          "own_self_send_ungrouped", "own_signal_of_wrong_peer", "own_split_without_nocolor")

# Over NCCL, torch makes groups and this barrier through its store, which no recorder of NCCL sees.
TORCH_OVER_MPI = ("own_monitored_barrier", "own_new_group_on_members_only")


def is_over_mpi(name, job):
    return job.get("library") == "mpi" or name in TORCH_OVER_MPI


def run_live(tools, job, folder, seconds, over):
    lockstep, runner, library = tools
    path = pathlib.Path(folder) / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    traces = pathlib.Path(folder) / "traces"
    environment = dict(os.environ, LD_PRELOAD=library, LOCKSTEP_DIR=str(traces))
    run = subprocess.run([runner, "--over", over, "--timeout", str(seconds), str(path)], env=environment, capture_output=True, text=True,
                         timeout=120, check=False)
    if not traces.is_dir():
        return run, None
    check = subprocess.run([lockstep, "check", "--format", "json", str(traces)], capture_output=True, text=True, timeout=60, check=False)
    try:
        return run, json.loads(check.stdout)
    except ValueError:
        return run, None


def made_by_a_line(job, group):
    return any(line.split()[:2] == ["init", group] for lines in job["ranks"].values() for line in lines if isinstance(line, str))


def torch_makes_it(job, expected):
    """The call in question is a new_group, which NCCL sees as the init of what it makes, the first call there."""
    lines = next(iter(job["ranks"].values()))
    position = expected.get("seq", len(lines))
    return job.get("library") == "torch" and position < len(lines) and str(lines[position]).startswith("new_group ")


def is_cycle_of_the_written(report, expected):
    first = report["findings"][0] if report["findings"] else {}
    return (bool({"deadlock", "imbalance"} & set(expected["verdicts"])) and report["verdict"] in ("deadlock", "order")
            and first.get("class") == "order_across_communicators" and set(expected.get("ranks", [])) <= set(first.get("divergent_ranks") or []))


def faults_of(report, expected, job, over_mpi):
    groups = job.get("groups", {})
    first = report["findings"][0] if report["findings"] else {}
    faults = []
    if over_mpi and report["verdict"] == "deadlock" and {"imbalance", "mismatch"} & set(expected["verdicts"]):
        expected = dict(expected, verdicts=[*expected["verdicts"], "deadlock"])
    message = (first.get("position") or {}).get("op") in ("send", "recv", "isend", "irecv")  # counted by themselves
    if torch_makes_it(job, expected) and (first.get("position") or {}).get("op") == "init":
        expected = dict(expected, seq=0)
    elif "seq" in expected and not over_mpi and not message and not made_by_a_line(job, expected.get("group")):
        expected = dict(expected, seq=expected["seq"] + 1)
    if report["verdict"] not in expected["verdicts"]:
        faults.append(f"verdict {report['verdict']} ({first.get('class')}), expected {expected['verdicts']}")
    if "ranks" in expected and first.get("divergent_ranks") != expected["ranks"]:
        faults.append(f"ranks {first.get('divergent_ranks')}, expected {expected['ranks']}")
    members = (first.get("communicator") or {}).get("ranks")
    if "group" in expected and expected["group"] in groups and members != groups[expected["group"]]:
        faults.append(f"group {members}, expected {expected['group']}")
    if "seq" in expected and (first.get("position") or {}).get("seq") != expected["seq"]:
        faults.append(f"position {(first.get('position') or {}).get('seq')}, expected {expected['seq']}")
    return faults


def main():
    arguments = sys.argv[1:]
    seconds = 2
    if "--seconds" in arguments:
        at = arguments.index("--seconds")
        seconds = int(arguments[at + 1])
        del arguments[at:at + 2]
    tools, names = arguments[:3], arguments[3:]
    here = pathlib.Path(__file__).parent
    if "--all" in names:
        names.remove("--all")
    elif not names:
        names = SAMPLE
    right = cycles = counted = twins = twins_right = 0
    for file in sorted(here.glob("*.json")):
        if names and file.stem not in names:
            continue
        pattern = json.loads(file.read_text(encoding="utf-8"))
        for part in ("broken", "repaired"):
            over_mpi = is_over_mpi(file.stem, pattern[part])
            with tempfile.TemporaryDirectory() as folder:
                # A program that ends does so by itself, on a busy machine later.
                patience = seconds if part == "broken" else 30 * seconds
                run, report = run_live(tools, pattern[part], folder, patience, "mpi" if over_mpi else "nccl")
            if run.returncode == UNREADABLE or report is None:
                print(f"{file.stem} {part}: not run: exit {run.returncode}: {(run.stderr or run.stdout).strip().splitlines()[-1:]}")
                continue
            if part == "repaired":
                twins += 1
                good = run.returncode == ENDED and report["verdict"] == "consistent"
                twins_right += good
                if not good:
                    print(f"{file.stem} repaired: exit {run.returncode}, {report['verdict']}: {[f['title'] for f in report['findings']]}")
                continue
            counted += 1
            faults = faults_of(report, pattern["expected"], pattern["broken"], over_mpi)
            cycle = bool(faults) and is_cycle_of_the_written(report, pattern["expected"])
            right += not faults or cycle
            cycles += cycle
            if faults:
                print(f"{file.stem} broken: {'a cycle: ' if cycle else ''}exit {run.returncode}: {'; '.join(faults)}")
    print(f"{right} of {counted} broken programs right, {cycles} of them as a cycle, {twins_right} of {twins} repaired ones consistent")
    return 0 if counted and right * 20 >= counted * 19 and twins_right == twins else 1


if __name__ == "__main__":
    sys.exit(main())
