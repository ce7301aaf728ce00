#!/usr/bin/env python3
"""The same logs as other launchers, collectors and viewers leave them: the answer must stay (cases.json and, where it is given, a
folder of cases with input.log and expected.json).

usage: vary_test.py LOCKSTEP [CASES_FOLDER] [--case NAME] [--kind KIND] [-v]
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

NOISE = ["iteration 1200/90000 | elapsed 0.61 s | loss 2.113 | grad norm 0.41", "INFO:root:step done, 812.4 tokens/s per device",
         "learning rate 1.5e-04, global batch 512, lm loss: 2.09E+00", "", "memory (MB) | allocated: 41022.1 | max allocated: 60110.8",
         "Loading shard 14 of 96 took 0.2 s", "epoch 3 step 1201 val/acc 0.71 in 12 ms"]
NUMBERS = re.compile(r"(?i)((?:\brank(?:s|\(s\))?[ =:]*\{?|\[rank|\[rank |ready ranks: |missing ranks: |\[1,|\bTP|between rank|and rank|missing ranks: \{)\s*)(\d+(?:(?:, ?|-| and )\d+)*)")


def every(change):
    return lambda lines: [change(i, line) for i, line in enumerate(lines)]


def noise(lines):
    mixed = []
    for i, line in enumerate(lines):
        # A table, a traceback or a list keeps together as it comes from one write.
        apart = i > 0 and not line.startswith((" ", "\t", "#", "0:", "1:", "2:", "3:", "/job:", "The first task")) and "Missing ranks" not in lines[i - 1] and "<stderr>" not in line
        mixed += (NOISE[i % 3:i % 3 + 3] if apart else []) + [line]
    return mixed


def cut(lines):
    return [NOISE[0][30:]] + NOISE * 300 + lines + NOISE * 30 + [NOISE[1][:17]]


def hard_wrap(width):
    return lambda lines: [line[at:at + width] for line in lines for at in range(0, max(len(line), 1), width)]


KINDS = {
    "crlf": every(lambda i, line: line + "\r"),
    "colours": every(lambda i, line: f"\x1b[{31 + i % 6}m{line}\x1b[0m"),
    "iso_time": every(lambda i, line: f"2025-11-0{1 + i % 9}T03:22:1{i % 10}.{i:09d}Z {line}"),
    "bracket_time": every(lambda i, line: f"[2025-11-02 03:22:1{i % 10},123] {line}"),
    "containerd": every(lambda i, line: f"2025-11-02T03:22:1{i % 10}.123456789+00:00 stderr F {line}"),
    "pod": every(lambda i, line: f"[pod/trainer-abc-{i % 4}/pytorch] {line}"),
    "compose": every(lambda i, line: f"trainer-{i % 4}  | {line}"),
    "pdsh": every(lambda i, line: f"gpu{i % 4}: {line}" if line.startswith("[") else line),
    "noise": noise,
    "cut": cut,
    "wrapped_120": hard_wrap(120),
    "wrapped_97": hard_wrap(97),
    "ranks": None,
}


def permuted(lines):
    """Ranks backwards. What is no rank (devices, sequence numbers) stays."""
    found = [int(n) for line in lines for match in NUMBERS.finditer(line) for n in re.findall(r"\d+", match.group(2))]
    top = max((n for n in found if n < 1000), default=0)
    swap = lambda n: str(top - int(n)) if int(n) <= top else n
    # "4-7" backwards would be "3-0".
    spread = lambda text: re.sub(r"(\d+)-(\d+)", lambda m: ", ".join(str(n) for n in range(int(m[1]), int(m[2]) + 1)), text)
    return [NUMBERS.sub(lambda m: m.group(1) + re.sub(r"\d+", lambda n: swap(n[0]), spread(m.group(2))), line) for line in lines], top


# Ranks without a word before them, numbers of devices, and wordings in which rank 0 is always the one that is compared with.
UNNAMED = re.compile(r"^\s*(?:- )?\[\d|\]\s*started |<stderr>:\d+!?: \[|^\d+!?: \[|NCCL INFO \w+: opCount|disagreement between rank0"
                     r"|ranks to join|not joined the collective|/task:\d|\[process=\d|_TP\d+$")


def check(lockstep, lines):
    done = subprocess.run([lockstep, "check", "--format", "json", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=120)
    try:
        assert not done.stderr, done.stderr
        return json.loads(done.stdout)
    except ValueError:
        return {"verdict": f"no report: {done.stderr.strip()}", "findings": []}


def ranks_of(report):
    return sorted({rank for finding in report["findings"] for rank in finding["divergent_ranks"]})


def cases_of(folder):
    own = json.loads((pathlib.Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))
    yield from ((case["name"], case["log"], case["verdict"], []) for case in own)
    if folder and folder.is_dir():
        for expected in sorted(folder.glob("*/expected.json")):
            known = json.loads(expected.read_text(encoding="utf-8"))
            if known["inputs"] != ["input.log"]:
                continue
            text = (expected.parent / "input.log").read_text(encoding="utf-8")
            yield expected.parent.name, text.splitlines(), known["acceptable_verdicts"], known["must_mention"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lockstep")
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--case")
    parser.add_argument("--kind")
    parser.add_argument("-v", action="store_true")
    arguments = parser.parse_args()
    runs, bad = 0, 0
    for name, lines, verdicts, mentions in cases_of(arguments.folder):
        if arguments.case and name != arguments.case:
            continue
        plain = check(arguments.lockstep, lines)
        for kind, change in KINDS.items():
            if arguments.kind and kind != arguments.kind:
                continue
            if change is None and any(UNNAMED.search(line) for line in lines):
                continue
            changed, top = permuted(lines) if change is None else (change(lines), None)
            report = check(arguments.lockstep, changed)
            runs += 1
            want = ranks_of(plain) if top is None else sorted(top - rank for rank in ranks_of(plain))
            problems = []
            if report["verdict"] not in verdicts:
                problems.append(f"verdict {report['verdict']}, expected {' or '.join(verdicts)}")
            if ranks_of(report) != want:
                problems.append(f"ranks {ranks_of(report)}, expected {want}")
            for problem in problems:
                print(f"{name}, {kind}: {problem}")
            if problems and arguments.v:
                print("\n".join("    " + line[:200] for line in changed[:12]))
            bad += bool(problems)
    print(f"{runs - bad} of {runs} varied logs have the same answer")
    return 1 if bad or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
