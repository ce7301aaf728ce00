"""What examples/export/lockstep_export.py takes out of the installed frameworks, against what lockstep itself works out.

Usage: compare.py LOCKSTEP   (in an environment with torch and deepspeed)
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXPORTER = HERE.parents[2] / "examples" / "export" / "lockstep_export.py"
sys.path.insert(0, str(EXPORTER.parent))
import lockstep_export
import torch

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
                            "--micro-batches", micro_batches, "--version", torch.__version__.partition("+")[0])
            order, _ = lockstep_export.torch_order(name, stages, virtual, micro_batches)
            known = json.loads(ours.stdout)["compute_comms"] if ours.returncode == 0 else {}
            theirs = {str(rank): ",".join(actions) for rank, actions in order.items()}
            first = next((f"rank {rank}: torch {theirs[rank]} / lockstep {known.get(rank)}" for rank in theirs if theirs[rank] != known.get(rank)), "")
            expect(f"{name} {stages} ranks {micro_batches} micro-batches", not first, first or ours.stdout[:300])
            with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
                file.write("".join(f"{theirs[str(rank)]}\n" for rank in range(stages)))
                file.flush()
                read = lockstep("plan", "import", "--torch-csv", file.name)
                expect(f"{name} as a CSV is imported without a problem", read.returncode == 0, read.stdout[:300])
            arguments = type("Arguments", (), {"stages": stages, "virtual": virtual, "micro_batches": micro_batches, "name": name})
            done = gate(lockstep_export.torch_schedule(arguments))
            expect(f"gate on the exported {name}", done.returncode == 0, done.stdout[:400])


def megatron_text(events):
    """As `lockstep plan schedule --framework megatron` prints a rank, without payloads and marks of gradients."""
    def message(word, peer, _payload, group):
        return f"{word}{'>' if word == 'send' else '<'}{peer}{'@world' if group == 'world' else ''}"

    text = []
    for event in events:
        if event[0] == "batch":
            text.append(f"batch#{event[1]}[{'; '.join(message(*entry) for entry in event[2])}]")
        elif event[0] == "single":
            text.append(f"i{event[2][0][0]}#{event[1]}[{message(*event[2][0])}]")
        else:
            text.append({"wait": "wait#{1}", "sync": "cudasync", "F": "F{1}.{2}", "B": "B{1}.{2}"}[event[0]].format(*event))
    return text


def without_payloads(events):
    kept = [event for event in events if re.match(r"batch#|isend#|irecv#|wait#|cudasync|[FB]\d", event)]
    return [re.sub(r"((?:send>|recv<)\d+) [^;\]@]*", r"\1", event) for event in kept]


def megatron_schedules():
    try:
        import megatron.core
    except ImportError as error:
        print(f"not tried: megatron-core ({error})")
        return
    print(f"megatron-core {megatron.core.__version__}")
    plain = {}, {"batch_p2p_comm": False}, {"variable_seq_lengths": True}
    overlapped = {"overlap_p2p_comm": True, "batch_p2p_comm": False}, {"overlap_p2p_comm": True, "batch_p2p_comm": False, "overlap_p2p_comm_warmup_flush": True}
    cases = [(stages, 1, count, config) for stages in (2, 4) for count in (1, 3, 8) for config in plain]
    cases += [(stages, virtual, count, config) for stages, virtual, count in ((2, 2, 4), (4, 2, 8), (4, 3, 4)) for config in ({}, {"batch_p2p_comm": False}, *overlapped)]
    for stages, virtual, count, config in cases:
        name = "interleaved" if virtual > 1 else "1F1B"
        what = f"Megatron {name} {stages} stages, {virtual} chunks, {count} micro-batches {config or ''}"
        ours = lockstep("plan", "schedule", "--framework", "megatron", "--name", name, "--stages", stages, "--micro-batches", count,
                        *(("--virtual", virtual) if virtual > 1 else ()), *(("--config", json.dumps(config)) if config else ()))
        try:
            theirs = [megatron_text(events) for events in lockstep_export.megatron_events(stages, virtual, count, config)]
        except lockstep_export.ExportError as error:
            expect(what, False, str(error))
            continue
        if ours.returncode != 0:
            expect(what, False, ours.stdout[:300])
            continue
        known = json.loads(ours.stdout).get("ranks", {})
        first = ""
        for rank, actions in enumerate(theirs):
            own = without_payloads(known.get(str(rank), []))
            if own != actions and not first:
                at = next((i for i, (a, b) in enumerate(zip(own, actions)) if a != b), min(len(own), len(actions)))
                first = f"rank {rank}, event {at}: megatron {actions[at:at + 3]} / lockstep {own[at:at + 3]}"
        expect(what, not first, first)
        arguments = type("Arguments", (), {"stages": stages, "virtual": virtual, "micro_batches": count, "config": json.dumps(config)})
        done = gate(lockstep_export.megatron_schedule(arguments))
        report = json.loads(done.stdout) if done.stdout.startswith("{") else {"verdict": done.stdout[:200], "findings": []}
        # With two stages, batched, both neighbours are one rank, and a gradient arrives where an activation is expected: Megatron's command line
        # refuses this. What only may go wrong (a ring of receives first, batches that end together) is told, and is no verdict.
        wanted = "mismatch" if virtual > 1 and stages == 2 and config.get("batch_p2p_comm", True) else "consistent"
        only_potential = all(finding["severity"] in ("potential", "unsafe", "note") for finding in report["findings"])
        expect(f"gate on the exported {what}: {wanted}", report["verdict"] == wanted and (wanted == "mismatch" or done.returncode == 0 or only_potential),
               report["verdict"])


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


for check in (deepspeed_schedules, torch_schedules, megatron_schedules, deepspeed_plans):
    check()
sys.exit(1 if failures else 0)
