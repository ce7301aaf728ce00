#!/usr/bin/env python3
"""Runs `lockstep check` over programs that follow public incidents, and over their repaired twins.

usage: run.py LOCKSTEP_BINARY [NAME...]

Each NAME.json here holds two Jobs (schemas/job.schema.json): `broken` does what the incident tells, `repaired` what its fix does.
`expected` was derived from the written program: the verdicts that are right, the ranks that differ, and the group and position
of the first call that does. A twin must be consistent, without any finding. Of the broken ones, verdict, ranks and position
must be right in 95 of 100; the names in KNOWN are the ones that are not, with the reason.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

KNOWN = {
    "given_068": "batches that end only as a whole are a model of their own, which is told as `potential` and gives no verdict",
}


def check(binary, job, folder):
    path = pathlib.Path(folder) / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    run = subprocess.run([binary, "check", "--format", "json", str(path)], capture_output=True, text=True, timeout=60, check=False)
    try:
        return json.loads(run.stdout)
    except ValueError:
        sys.exit(f"no report: exit {run.returncode}: {run.stderr}")


def faults_of(report, expected):
    first = report["findings"][0] if report["findings"] else {}
    group = (first.get("communicator") or {}).get("name")
    seq = (first.get("position") or {}).get("seq")
    faults = []
    if report["verdict"] not in expected["verdicts"]:
        faults.append(f"verdict {report['verdict']} ({first.get('class')}), expected {expected['verdicts']}")
    if "ranks" in expected and first.get("divergent_ranks") != expected["ranks"]:
        faults.append(f"ranks {first.get('divergent_ranks')}, expected {expected['ranks']}")
    if "group" in expected and group != expected["group"]:
        faults.append(f"group {group}, expected {expected['group']}")
    if "seq" in expected and seq != expected["seq"]:
        faults.append(f"position #{seq}, expected #{expected['seq']}")
    return faults


def main():
    binary, names = sys.argv[1], sys.argv[2:]
    here = pathlib.Path(__file__).parent
    files = sorted(f for f in here.glob("*.json") if not names or f.stem in names)
    wrong = unexpected = accused = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            pattern = json.loads(file.read_text(encoding="utf-8"))
            report = check(binary, pattern["broken"], folder)
            faults = faults_of(report, pattern["expected"])
            wrong += bool(faults)
            if bool(faults) != (file.stem in KNOWN):
                unexpected += 1
                print(f"{file.stem}: {'; '.join(faults) or 'is right now: take it out of KNOWN'}")
            twin = check(binary, pattern["repaired"], folder)
            warnings = twin["input_quality"]["warnings"]
            if twin["verdict"] != "consistent" or twin["findings"] or warnings:
                accused += 1
                print(f"{file.stem}: the repaired twin is {twin['verdict']}: {[f['title'] for f in twin['findings']]} {warnings}")
    print(f"{len(files) - wrong} of {len(files)} patterns right, {len(files) - accused} of {len(files)} twins consistent")
    enough = bool(names) or (files and wrong * 20 <= len(files))
    return 0 if enough and not unexpected and not accused else 1


if __name__ == "__main__":
    sys.exit(main())
