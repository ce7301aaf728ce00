#!/usr/bin/python3
"""The program that a plan predicts is the one that was recorded from the framework: call by call, with counts and datatypes.

Usage: recorded_test.py LOCKSTEP SHARED EXAMPLES     exit 77 (skipped) where the recordings are absent
"""
import json
import pathlib
import re
import subprocess
import sys

LOCKSTEP, EXAMPLES = sys.argv[1], pathlib.Path(sys.argv[3])
TRACES = pathlib.Path(sys.argv[2]) / "traces" / "deepspeed_1522"
SHORT = {"float16": "f16", "float32": "f32", "int64": "i64", "uint8": "u8"}
# Recorded case, plan, and the words that both outcomes share.
CASES = {"a_type_transformer": "founding_type_transformer.json", "b_type_embed": "founding_type_embed.json",
         "c_embed_zero0": "founding_unfused.json", "c_embed_zero0_fused": "founding_fp16_optimizer.json",
         "e_embed_or_transformer": "founding_type_embed_or_transformer.json",
         "f_uniform": "founding_uniform.json", "f_parameters": "founding_parameters.json",
         "g_embed_noclip": "founding_no_clipping.json"}


def recorded(case, rank, phase):
    """[(op, members, count, datatype, root or peer)] of one training step"""
    calls = []
    for line in (TRACES / f"{case}.rank{rank}.jsonl").read_text().splitlines():
        call = json.loads(line)
        if call["phase"] == phase:
            calls.append((call["op"], tuple(call["ranks"]), call["numel"], SHORT[call["dtype"]],
                          call.get("root", call.get("peer"))))
    return calls


def planned(plan, rank, iteration):
    done = subprocess.run([LOCKSTEP, "plan", "expand", EXAMPLES / plan, "--iteration", iteration], capture_output=True,
                          text=True, timeout=60, check=True)
    job = json.loads(done.stdout)
    calls = []
    for line in job["ranks"][str(rank)]:
        words = line.split()
        op = words[0]
        rest = words[2:] if op in ("send", "recv") else words[1:]
        group, kind = rest[0], re.fullmatch(r"(\w+)\[(\d+)\]", rest[1])
        root = re.search(r"\broot=(\d+)", line)
        who = int(words[1]) if op in ("send", "recv") else int(root[1]) if root else None
        calls.append((op, tuple(job["groups"][group]), int(kind[2]), kind[1], who))
    return calls


if not TRACES.is_dir():
    print(f"skipped: no recordings at {TRACES}")
    sys.exit(77)
failures = compared = 0
for case, plan in CASES.items():
    if not (TRACES / f"{case}.rank0.jsonl").exists():
        continue
    for rank in (0, 1):
        for phase, iteration in (("train_batch[0]", "first"), ("train_batch[1]", "second")):
            was, would = recorded(case, rank, phase), planned(plan, rank, iteration)
            # A run that hung was cut short: what it did must be the beginning of what it would do.
            cut = len(was) < len(would) and case in ("b_type_embed", "g_embed_noclip", "c_embed_zero0")
            if was == would[:len(was)] and (cut or len(was) == len(would)):
                compared += len(was)
                continue
            failures += 1
            at = next((i for i, pair in enumerate(zip(was, would)) if pair[0] != pair[1]), min(len(was), len(would)))
            print(f"{case} rank {rank} {phase}: call {at} of {len(was)} recorded, {len(would)} planned: "
                  f"recorded {was[at:at + 2]}, planned {would[at:at + 2]}")
print(f"{compared} calls compared, {failures} failures")
sys.exit(1 if failures or not compared else 0)
