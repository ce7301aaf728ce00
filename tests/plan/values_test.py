#!/usr/bin/python3
"""What `lockstep plan` works out equals what the frameworks did when they were run: every case of the golden files.

A golden element holds parameters and results; its parameters are the flags. Elements are compared whole, without the keys
that say where a value came from or what was checked when it was taken.

Usage: values_test.py LOCKSTEP SHARED [PART...]     exit 77 (skipped) where the golden files are absent
"""
import json
import pathlib
import subprocess
import sys
import tempfile

LOCKSTEP, GOLDEN = sys.argv[1], pathlib.Path(sys.argv[2]) / "golden"
CHECKS = {"same_new_group_order_on_all_ranks", "same_on_all_ranks", "pairing", "payload_check", "validate_communication",
          "sim_steps", "sim_error", "sim_note"}
failures = cases = 0


def flags(parameters):
    """{"bucket_size": None, "order": [0, 1]} -> --bucket-size null --order 0,1"""
    out = []
    for key, value in parameters.items():
        flat = isinstance(value, list) and value and not any(isinstance(item, (list, dict)) for item in value)
        text = value if isinstance(value, str) else ",".join(map(str, value)) if flat else json.dumps(value)
        out += ["--" + key.replace("_", "-"), text]
    return out


def expect(part, arguments, expected, exit_code=0):
    global failures, cases
    cases += 1
    done = subprocess.run([LOCKSTEP, "plan", part, *arguments], capture_output=True, text=True, timeout=60, check=False)
    try:
        actual = json.loads(done.stdout)
    except json.JSONDecodeError:
        actual = f"{done.stdout!r} {done.stderr!r}"
    if actual == expected and done.returncode == exit_code:
        return
    failures += 1
    print(f"plan {part} {' '.join(arguments)} -> {done.returncode}\n  expected {json.dumps(expected)[:1500]}\n"
          f"  actual   {json.dumps(actual)[:1500]} {done.stderr}")


def load(name):
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


def partition():
    golden = load("deepspeed/partitions.json")
    versions = {"binary-search": "", "dynamic": "_master_2025_02"}
    for algorithm, suffix in versions.items():
        choice = ["--algorithm", algorithm]
        for case in golden["partition_uniform"]:
            sizes = {key: case[key] for key in ("num_items", "num_parts")}
            expect("partition", flags(sizes) + choice, {"parts": case["parts" + suffix]})
        for case in golden["partition_balanced"]:
            sizes = {"weights": case["weights"], "parts": case["num_parts"]}
            expect("partition", flags(sizes) + choice, {"parts": case["parts" + (suffix or "_85ce85dd")]})


def split(element, parameters, drop=()):
    """The flags of an element and what must be printed for it."""
    given = {key: element[key] for key in parameters if key in element}
    return flags(given), {key: value for key, value in element.items() if key not in CHECKS and key not in drop}


def groups():
    for case in load("megatron_groups.json")["cases"]:
        arguments, expected = split(case, ["world", "create_gloo_process_groups"])
        expect("groups", ["--framework", "megatron", *arguments, *flags(case["args"])], expected)
    mesh = load("device_mesh.json")
    for case in mesh["device_mesh"]:
        arguments, expected = split(case, ["names", "shape"])
        expect("groups", ["--framework", "device-mesh", *arguments], expected)
    for case in mesh["torchtitan"]:
        expect("groups", ["--framework", "device-mesh", *flags(case["args"])], case)
    golden = load("deepspeed_groups.json")
    sections = {"hpz": ["world", "zero_hpz_partition_size"],
                "mics": ["world", "shard_size", "hierarchical", "ndev_per_node"],
                "expert": ["world", "ep_size", "use_data_before_expert_parallel"],
                "expert_with_mp": ["world", "tp", "ep", "pp"],
                "pipe_topology": ["pp", "dp", "mp"]}
    for section, parameters in sections.items():
        for case in golden[section]:
            arguments, expected = split(case, parameters)
            expect("groups", ["--framework", "deepspeed", *arguments], expected)
    for case in load("deepspeed/groups.json")["topologies"]:
        arguments, expected = split(case, ["pp", "dp", "mp", "world"])
        expect("groups", ["--framework", "deepspeed", *arguments], expected)


def buckets():
    golden = load("ddp_buckets.json")
    for case in golden["cases"]:
        arguments, expected = split(case, ["order", "cap_mb", "find_unused", "skip", "static"], ["id", "name"])
        expect("buckets", ["--framework", "ddp", *arguments], expected)
    for case in golden["compute_bucket_assignment_by_size"]:
        arguments, expected = split(case, ["numels", "dtype", "limits_bytes"])
        expect("buckets", ["--framework", "ddp", *arguments], expected)
    for case in load("megatron_buckets.json")["cases"]:
        arguments, expected = split(case, ["stage", "bucket_size", "distributed_optimizer", "dp"])
        expect("buckets", ["--framework", "megatron", *arguments], expected)


# What golden files call the flags of the manual.
SAME = {"schedule": "name", "pp": "stages", "vp": "virtual", "chunks": "virtual", "microbatches": "micro_batches",
        "num_chunks": "micro_batches", "group": "microbatch_group_size_per_vp_stage"}


def schedules():
    files = {"megatron_schedules.json": "megatron", "pytorch_pipelining.json": "torch", "zero_bubble.json": "zero-bubble",
             "pytorch_runtime_1f1b_gpipe.json": "torch-runtime", "dualpipe.json": "dualpipe"}
    keys = ["schedule", "pp", "vp", "virtual", "num_stages", "microbatches", "num_chunks", "stages", "chunks", "forward_only",
            "post_validation", "config"]
    for file, framework in files.items():
        for case in load(file)["cases"]:
            arguments, expected = split(case, keys)
            start = ["--framework", framework]
            with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as csv:
                if case["schedule"].endswith(".csv"):  # of an order that came from a file the case holds the rows
                    csv.write("".join(row + "\r\n" for row in case["compute_only"].values()))
                    csv.flush()
                    start += ["--csv", csv.name]
                expect("schedule", start + arguments, expected)
                # And in the words of the manual; fields of the configuration as flags of their own.
                plain = {SAME.get(key, key): case[key] for key in keys if key in case and key not in ("config", "num_stages")}
                config = {SAME.get(key, key): value for key, value in case.get("config", {}).items()}
                expect("schedule", start + flags(plain) + flags(config), expected)
    for version, file in (("OLD", "deepspeed/schedules.json"), ("NEW", "deepspeed/schedules_master_2025_02.json")):
        golden = load(file)
        for name, section in (("train", "TrainSchedule"), ("inference", "InferenceSchedule")):
            for case in golden[section]:
                arguments, expected = split(case, ["stages", "micro_batches"])
                expect("schedule", ["--framework", "deepspeed", "--name", name, "--version", version, *arguments], expected)


PARTS = {"schedules": schedules, "partition": partition, "groups": groups, "buckets": buckets}

if not GOLDEN.is_dir():
    print(f"skipped: no golden files at {GOLDEN}")
    sys.exit(77)
for name in sys.argv[3:] or PARTS:
    PARTS[name]()
print(f"{cases} cases, {failures} failures")
sys.exit(1 if failures or not cases else 0)
