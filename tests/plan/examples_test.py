#!/usr/bin/python3
"""The example plans follow the schema and have the verdicts that their page promises; SARIF of a finding is as the services want it.

Usage: examples_test.py LOCKSTEP SOURCE_DIR     the schema is not checked where python3-jsonschema is absent
"""
import json
import pathlib
import re
import subprocess
import sys

LOCKSTEP, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
EXAMPLES = SOURCE / "examples" / "plans"
EXIT = {"deadlock": 1, "consistent": 0}
failures = 0


def check(good, message):
    global failures
    if not good:
        failures += 1
        print(message)


def gate(*arguments):
    return subprocess.run([LOCKSTEP, "gate", *arguments], capture_output=True, text=True, timeout=60, check=False)


try:
    import jsonschema
    schema = jsonschema.Draft202012Validator(json.loads((SOURCE / "schemas" / "plan.schema.json").read_text()))
except ImportError:
    schema = None

promised = {}
for row in (EXAMPLES / "README.md").read_text().splitlines():
    cells = [cell.strip() for cell in row.split("|")]
    if len(cells) == 5 and cells[3] in EXIT:
        promised.update({name: cells[3] for name in re.findall(r"`(\w+\.json)`", cells[1])})
check(set(promised) == {path.name for path in EXAMPLES.glob("*.json")}, f"README lists {sorted(promised)}")

for name, verdict in sorted(promised.items()):
    plan = json.loads((EXAMPLES / name).read_text())
    if schema:
        errors = [error.message for error in schema.iter_errors(plan)]
        check(not errors, f"{name}: {errors[:2]}")
    done = gate(EXAMPLES / name, "--format", "json")
    report = json.loads(done.stdout)
    check(report["verdict"] == verdict and done.returncode == EXIT[verdict], f"{name}: {report['verdict']}, exit {done.returncode}")

FOUNDING = EXAMPLES / "founding_type_embed.json"
REASON = "stage 1 holds only the tied embedding, which has no bias and no LayerNorm, so its no-decay group is empty and dropped"
finding = json.loads(gate(FOUNDING, "--format", "json").stdout)["findings"][0]
check(REASON in finding["explanation"] and "varies by stage" in finding["explanation"], finding["explanation"])

sarif = json.loads(gate(FOUNDING, "--format", "sarif").stdout)
result = sarif["runs"][0]["results"][0]
place = result["locations"][0]["physicalLocation"]
line = FOUNDING.read_text().splitlines()[place["region"]["startLine"] - 1]
check(sarif["version"] == "2.1.0" and sarif["runs"][0]["tool"]["driver"]["rules"][0]["id"] == result["ruleId"], "SARIF rules")
check('"partition"' in line, f"SARIF points at {line!r}")
check(re.fullmatch("[0-9a-f]{16}", result["partialFingerprints"]["lockstep/v1"]), "SARIF fingerprint")
other = json.loads(gate(EXAMPLES / "founding_data_parallel.json", "--format", "sarif").stdout)["runs"][0]["results"][0]
check(other["partialFingerprints"] == result["partialFingerprints"], "the fingerprint changes with the number of ranks")

junit = gate(FOUNDING, "--format", "junit").stdout
check('failures="1"' in junit and "no-decay group" in junit, junit)
check(gate(FOUNDING, "--format", "github").stdout.startswith("::error file="), "GitHub annotation")

# Only new findings fail a comparison.
check(gate("--base", FOUNDING, "--head", FOUNDING).returncode == 0, "a known finding fails the comparison")
check(gate("--base", EXAMPLES / "founding_uniform.json", "--head", FOUNDING).returncode == 1, "a new finding passes")

print(f"{len(promised)} examples, {failures} failures")
sys.exit(1 if failures else 0)
