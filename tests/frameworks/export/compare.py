"""What examples/export/lockstep_export.py takes out of the installed frameworks, against what lockstep itself works out.

Usage: compare.py LOCKSTEP   (in an environment with torch and deepspeed)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXPORTER = HERE.parents[2] / "examples" / "export" / "lockstep_export.py"
sys.path.insert(0, str(EXPORTER.parent))
import lockstep_export

failures = 0


def expect(what, good, detail=""):
    global failures
    failures += not good
    print(f"{'ok' if good else 'FAILED'}  {what}{'' if good else f': {detail}'}", flush=True)


def lockstep(*arguments):
    return subprocess.run([sys.argv[1], *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False, text=True)


def gate(value):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(value, file)
        file.flush()
        return lockstep("gate", file.name, "--format", "json")


def deepspeed_schedules():
    for schedule_class, name in (("TrainSchedule", "train"), ("InferenceSchedule", "inference")):
        for stages in (1, 2, 3, 4, 7):
            for micro_batches in (1, 2, 5, 8):
                ours = lockstep("plan", "schedule", "--framework", "deepspeed", "--name", name, "--stages", stages, "--micro-batches",
                                micro_batches, "--version", "NEW")
                theirs = lockstep_export.deepspeed_instructions(schedule_class, stages, micro_batches)
                per_stage = [stage["steps"] for stage in json.loads(ours.stdout)["per_stage"]]
                expect(f"{schedule_class} {stages} stages {micro_batches} micro-batches", per_stage == theirs, "other instructions")
        arguments = type("Arguments", (), {"stages": 4, "micro_batches": 6, "schedule_class": schedule_class})
        done = gate(lockstep_export.deepspeed_schedule(arguments))
        expect(f"gate on the exported {schedule_class}", done.returncode == 0, done.stdout[:400])


def torch_schedules():
    for name, virtual in (("Interleaved1F1B", 2), ("LoopedBFS", 2), ("InterleavedZeroBubble", 2), ("ZBVZeroBubble", 2), ("DualPipeV", 2)):
        for stages, micro_batches in ((2, 4), (4, 8)):
            ours = lockstep("plan", "schedule", "--framework", "torch", "--name", name, "--stages", stages, "--virtual", virtual,
                            "--micro-batches", micro_batches)
            order, _ = lockstep_export.torch_order(name, stages, virtual, micro_batches)
            known = json.loads(ours.stdout)["compute_comms"] if ours.returncode == 0 else {}
            # torch 2.15 names the waits for sends and reductions, which earlier releases make at the end: the rest is compared.
            theirs = {str(rank): ",".join(action for action in actions if "WAIT_" not in action) for rank, actions in order.items()}
            first = next((f"rank {rank}: torch {theirs[rank]} / lockstep {known.get(rank)}" for rank in theirs if theirs[rank] != known.get(rank)), "")
            expect(f"{name} {stages} ranks {micro_batches} micro-batches", not first, first or ours.stdout[:300])
            arguments = type("Arguments", (), {"stages": stages, "virtual": virtual, "micro_batches": micro_batches, "name": name})
            done = gate(lockstep_export.torch_schedule(arguments))
            expect(f"gate on the exported {name}", done.returncode == 0, done.stdout[:400])


def deepspeed_plans():
    for function, code in (("by_block", 0), ("by_embed", 1)):
        done = subprocess.run([sys.executable, str(EXPORTER), "deepspeed-plan", f"{HERE / 'model.py'}:{function}", "--pipe", "2"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False, text=True, env=dict(os.environ))
        expect(f"export of {function}", done.returncode == 0, done.stderr[-400:])
        if done.returncode != 0:
            continue
        plan = json.loads(done.stdout)
        report = gate(plan)
        expect(f"gate on the exported plan of {function}", report.returncode == code, report.stdout[:400])
        parts = plan["partition"]["parts"]
        own = dict(plan, partition={"method": "type:embed" if function == "by_embed" else "type:block"})
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(own, file)
            file.flush()
            shown = lockstep("plan", "expand", file.name).stdout
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(plan, file)
            file.flush()
            expect(f"cut of {function} is lockstep's own: {parts}", shown == lockstep("plan", "expand", file.name).stdout, "another Job")


for check in (deepspeed_schedules, torch_schedules, deepspeed_plans):
    check()
sys.exit(1 if failures else 0)
