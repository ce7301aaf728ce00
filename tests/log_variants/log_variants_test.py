#!/usr/bin/env python3
"""What `lockstep check` says to logs of many frameworks: verdict, ranks and what must be mentioned (cases.json).

usage: log_variants_test.py LOCKSTEP [NAME...]
`ranks`: null = not decided by the log; [] = no rank may be accused.
"""
import json
import pathlib
import subprocess
import sys


def faults(case, report, text):
    found = []
    if report["verdict"] not in case["verdict"]:
        found.append(f"verdict {report['verdict']}, expected {' or '.join(case['verdict'])}")
    ranks = sorted({rank for finding in report["findings"] for rank in finding.get("divergent_ranks") or []})
    if case["ranks"] is not None and ranks != case["ranks"]:
        found.append(f"ranks {ranks}, expected {case['ranks']}")
    found += [f"does not mention {words!r}" for words in case["mention"] if words.lower() not in text.lower()]
    return found


def main():
    cases = json.loads((pathlib.Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))
    wanted = sys.argv[2:]
    bad = 0
    for case in cases:
        if wanted and case["name"] not in wanted:
            continue
        log = "\n".join(case["log"]) + "\n"
        done = subprocess.run([sys.argv[1], "check", "--format", "json", "-"], input=log, capture_output=True, text=True, timeout=60)
        try:
            assert not done.stderr, done.stderr
            report = json.loads(done.stdout)
        except ValueError:
            problems = [f"no report: {done.stderr.strip()}"]
        else:
            problems = faults(case, report, done.stdout)
        for problem in problems:
            print(f"{case['name']}: {problem}")
        bad += bool(problems)
    print(f"{len(wanted or cases) - bad} of {len(wanted or cases)} cases right")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
