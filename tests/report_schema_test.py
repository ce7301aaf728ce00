#!/usr/bin/python3
"""Validates reports and jobs against the JSON schemas.

Usage: report_schema_test.py SCHEMAS_DIR SAMPLES_PROGRAM GOLDEN_DIR
Exit code 77: python3-jsonschema is not installed (ctest counts it as skipped).
"""
import copy
import json
import pathlib
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)


def strict(schema):
    """The schema with unknown fields forbidden: readers must tolerate them, our own writer must not invent them."""
    schema = copy.deepcopy(schema)

    def forbid(node):
        if isinstance(node, dict):
            if "properties" in node and "additionalProperties" not in node:
                node["additionalProperties"] = False
            for child in node.values():
                forbid(child)
        elif isinstance(node, list):
            for child in node:
                forbid(child)

    forbid(schema)
    return schema


def validator(schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def main():
    schemas, samples, golden = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    load = lambda path: json.loads(path.read_text(encoding="utf-8"))
    report = validator(strict(load(schemas / "report.schema.json")))
    job = validator(load(schemas / "job.schema.json"))
    classes = {entry["id"] for entry in load(schemas / "classes.json")["classes"]}
    failures = 0
    checked = 0

    def check(name, schema, value):
        nonlocal failures, checked
        checked += 1
        problems = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
                    for error in schema.iter_errors(value)]
        for finding in value.get("findings", []):
            if finding.get("class") not in classes:
                problems.append(f"class {finding.get('class')!r} is not in classes.json")
        for problem in problems[:5]:
            print(f"{name}: {problem}")
        failures += bool(problems)

    made_by_hand = json.loads(subprocess.run([samples], check=True, stdout=subprocess.PIPE).stdout)
    for index, value in enumerate(made_by_hand):
        check(f"sample {index}", report, value)
    for path in sorted(golden.glob("*/expected.json")):
        check(path, report, load(path))
    for path in sorted(golden.glob("*/*.json")):
        if path.name == "expected.json":
            continue
        try:
            value = load(path)
        except ValueError:
            continue  # a case about broken input
        if isinstance(value, dict) and str(value.get("schema", "")).startswith("lockstep-job/"):
            check(path, job, value)

    # A schema that accepts everything would pass all of the above.
    broken = copy.deepcopy(made_by_hand[0])
    broken["verdict"] = "hang"
    if report.is_valid(broken):
        print("the report schema accepts a verdict that does not exist")
        failures += 1
    for wrong in ({"ranks": {}}, {"groups": {"g": [-1]}, "ranks": {}}, {"groups": {}, "ranks": {"a": []}},
                  {"groups": {}, "ranks": {"0": ["ALL_REDUCE g"]}}, {"groups": {}, "ranks": {}, "ends": {"0": "died"}}):
        if job.is_valid(wrong):
            print(f"the job schema accepts {wrong}")
            failures += 1
    right = {"schema": "lockstep-job/1", "groups": {"mp": [0, 1]}, "library": "torch",
             "ranks": {"0": ["all_reduce mp f32[1]", "batch[isend 1 f32[n]; irecv 1 f32[n]]"], "1": []},
             "ends": {"0": "exited 0", "1": "killed 9"}}
    check("job in this file", job, right)
    print(f"{checked} documents checked, {failures} failures")
    return 1 if failures else 0


sys.exit(main())
