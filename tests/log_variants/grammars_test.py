#!/usr/bin/env python3
"""Each kind of line that reports of hangs hold, by itself: the report must cite it, with file and line number (grammars.json).

usage: grammars_test.py LOCKSTEP [ID...]
A sample without a log has the reason why there is nothing to read in such a line. `ranks` and `host`: what else must come out.
"""
import json
import pathlib
import subprocess
import sys


def faults(sample, lockstep):
    done = subprocess.run([lockstep, "check", "--format", "json", "-"], input="\n".join(sample["log"]) + "\n", capture_output=True, text=True, timeout=60)
    try:
        assert not done.stderr, done.stderr
        report = json.loads(done.stdout)
    except ValueError:
        return [f"no report: {done.stderr.strip()}"]
    found = []
    if not any(evidence["line"] for finding in report["findings"] for evidence in finding["evidence"]):
        found.append("no line is cited")
    ranks = sorted({rank for finding in report["findings"] for rank in finding["divergent_ranks"]})
    if "ranks" in sample and ranks != sample["ranks"]:
        found.append(f"ranks {ranks}, expected {sample['ranks']}")
    if "host" in sample and sample["host"] not in [suspect["host"] for suspect in report["suspects"]]:
        found.append(f"no suspect on {sample['host']}")
    return found


def main():
    samples = json.loads((pathlib.Path(__file__).parent / "grammars.json").read_text(encoding="utf-8"))
    wanted = sys.argv[2:]
    bad, reasons = 0, 0
    for sample in samples:
        if wanted and sample["id"] not in wanted:
            continue
        if "log" not in sample:
            assert sample["reason"]
            reasons += 1
            continue
        problems = faults(sample, sys.argv[1])
        for problem in problems:
            print(f"{sample['id']}: {problem}")
        bad += bool(problems)
    total = len(wanted or samples)
    print(f"{total - bad - reasons} of {total} kinds of lines are cited, {reasons} left out with a reason")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
