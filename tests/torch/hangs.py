#!/usr/bin/env python3
"""One script of examples/torch_hangs, or one fault of fault_programs.py beside this file: it hangs, is recorded, explained while it stands and
after it was killed; its repaired twin ends, is consistent, and prints what it prints without the recorder.
Usage: hangs.py LOCKSTEP LIBLOCKSTEP NAME, or hangs.py LOCKSTEP LIBLOCKSTEP fault_programs FAULT

LOCKSTEP_TORCH_PYTHON is another interpreter than /usr/bin/python3, LOCKSTEP_TORCH_LAUNCHER=torchrun has the ranks started by torchrun.

What must be said stands in NAME.expected.json beside the script (that of the faults under their names); `"ends": true` is a job that gloo ends with
an error instead of leaving it to hang. Nothing depends on how long anything takes: a job
counts as standing when its traces do not change and its threads do not want the processor, over several looks.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from gloo_lines import without_gloo

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples" / "torch_hangs"
PYTHON = os.environ.get("LOCKSTEP_TORCH_PYTHON", "/usr/bin/python3")
BY_TORCHRUN = os.environ.get("LOCKSTEP_TORCH_LAUNCHER") == "torchrun"
SKIPPED = 77
PATIENCE_S = 400  # until a run counts as lost; an idle machine needs ten
LOOKS = 12

lockstep, library = (os.path.abspath(path) for path in sys.argv[1:3])
name = sys.argv[3]
fault = sys.argv[4:5]
folder = HERE if fault else EXAMPLES
problems = []


def expect(condition, message):
    if not condition:
        problems.append(message)


def torch_version():
    script = "import torch, torch.distributed as d; assert d.is_available(); print(torch.__version__)"
    probe = subprocess.run([PYTHON, "-c", script], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        print("skipped: %s has no torch with torch.distributed (Debian: python3-torch)" % PYTHON)
        sys.exit(SKIPPED)
    return probe.stdout.strip()


def start(ranks, arguments, traces):
    ours = ("LOCKSTEP", "TORCH", "LD_PRELOAD")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    if traces is not None:
        environment.update(LD_PRELOAD=library, LOCKSTEP_DIR=str(traces), LOCKSTEP_RING="256k")
    launcher = [str(EXAMPLES / "launch.py"), str(ranks)]
    if BY_TORCHRUN:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=%d" % ranks]
        environment["OMP_NUM_THREADS"] = "1"
    return subprocess.Popen([PYTHON, *launcher, name + ".py", *fault, *arguments], cwd=folder, env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def finish(process):
    """Output and status of a run that must end."""
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        kill(process)
        out, err = process.communicate()
        problems.append("a run that must end does not: %s %s" % (out, err))
    # Lines of torch's C++ logger carry time and process; those of several ranks come in any order.
    err = sorted(re.sub(r"^(\[\w+\]:)?\[?[WIE]\d{4,8} [\d:.]+ +(\d+ )?", "", line) for line in err.splitlines())
    return process.returncode, without_gloo(out) if BY_TORCHRUN or fault else out, err


def children(pid):
    found = []
    for task in pathlib.Path("/proc/%d/task" % pid).glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:
            pass
    return found


def kill(process):
    """With its ranks: torchrun starts each in a session of its own."""
    ranks = children(process.pid)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    for rank in ranks:
        try:
            os.kill(rank, signal.SIGKILL)
        except ProcessLookupError:
            pass


def is_busy(pid):
    """Whether a thread runs, wants to, or waits for a disk."""
    for stat in pathlib.Path("/proc/%d/task" % pid).glob("*/stat"):
        try:
            if stat.read_text().rsplit(")", 1)[1].split()[0] in "RD":
                return True
        except OSError:
            continue
    return False


def expected_of(version):
    expected = json.loads((folder / (name + ".expected.json")).read_text())
    if fault:
        expected = expected[fault[0]]
    if not version.startswith("1."):
        expected.update(expected.get("torch 2", {}))  # where it comes to a standstill elsewhere
    return expected


def wait_until_it_stands(process, ranks, traces, may_end):
    """A rank that works wants the processor at nearly every look; one that asks a store now and then, at some. False where it ends
    before."""
    deadline = time.monotonic() + PATIENCE_S
    before, still, busy = None, 0, {}
    while time.monotonic() < deadline:
        time.sleep(0.25)
        if process.poll() is not None:
            expect(may_end, "the run ended with status %d instead of hanging" % process.returncode)
            return False
        files = sorted(traces.glob("*/*.lst"))
        look = [hashlib.sha1(file.read_bytes()).digest() for file in files]
        if look != before or len(files) != ranks or max(busy.values(), default=0) > LOOKS // 3:
            before, still, busy = look, 0, {}
        still += 1
        for rank in children(process.pid):
            busy[rank] = busy.get(rank, 0) + is_busy(rank)
        if still > LOOKS and max(busy.values(), default=0) <= LOOKS // 3:
            return True
    problems.append("the run did not come to a standstill")
    return False


def check(traces, *options):
    command = [lockstep, "check", *options, str(traces)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    return run.returncode, run.stdout


def source_line(call):
    lines = (folder / (name + ".py")).read_text().splitlines()
    numbers = [number for number, text in enumerate(lines, 1) if text.strip() == call["line"]]
    expect(numbers, "%s is no line of the script" % call["line"])
    return numbers


def own_frames(view):
    return [frame for frame in view.get("site", []) if frame.get("file", "").endswith(name + ".py")]


def via_of(view):
    """What torch did between the innermost frame and the call."""
    last = view.get("site", [{}])[-1].get("function", "")
    return last[4:] if last.startswith("via ") else ""


def check_call(call, finding, text):
    views = finding.get("operations", []) + [wait["operation"] for wait in finding.get("wait_for", []) if wait.get("operation")]
    views = [view for view in views if view["rank"] in call["ranks"] and view.get("op") == call["op"]]
    numbers = source_line(call)
    told = [view for view in views if own_frames(view) and own_frames(view)[0].get("line") in numbers]
    expect(told, "no call of rank %s is told as %s from line %s: %s" % (call["ranks"], call["op"], numbers, views))
    for view in told[:1]:
        frame = own_frames(view)[0]
        expect(frame["function"].split(".")[0] == call["function"], "function: %s" % frame)
        expect(call.get("via", "") in via_of(view), "via: %s" % view)
        for key in ("peer", "seq"):
            wanted = call.get(key, view.get(key))
            expect(view.get(key) == wanted, "%s: %s, not %s" % (key, view.get(key), wanted))
        place = "%s.py:%d in %s" % (name, frame["line"], call["function"])
        expect(place in re.sub(r"\s+", " ", text), "the text does not say %s" % place)


def check_findings(expected, version, when, traces):
    status, out = check(traces, "--format", "json")
    _, text = check(traces)
    count = len(problems)
    report = json.loads(out)
    finding = (report["findings"] or [{}])[0]
    expect(status == 1, "status %d" % status)
    # More than one, where it depends on how far some ranks come.
    verdicts = expected["verdict"] if isinstance(expected["verdict"], list) else [expected["verdict"]]
    expect(report["verdict"] in verdicts, "verdict %s" % report["verdict"])
    for key in ("class", "divergent_ranks", "divergent_meaning"):
        expect(key not in expected or finding.get(key) == expected[key], "%s: %s" % (key, finding.get(key)))
    if "communicator" in expected:
        told = finding.get("communicator", {}).get("name")
        expect(told == expected["communicator"], "communicator: %s" % told)
    seq = expected.get("position", {}).get("seq")
    if isinstance(seq, dict):
        seq = seq.get(".".join(version.split(".")[:2]))
    told = finding.get("position", {}).get("seq")
    expect(seq is None or told == seq, "position: %s, not %s" % (told, seq))
    for call in expected["calls"]:
        check_call(call, finding, text)
    for counts in expected.get("counts", []):
        places = ["%s.py:%d " % (name, number) for number in source_line(counts)]
        told = [entry for entry in finding.get("counts", []) if entry["communicator"] == counts["communicator"] and
                entry["by_rank"] == counts["by_rank"] and any(place in entry.get("call_site", "") for place in places)]
        expect(told, "counts: %s" % finding.get("counts"))
    expect(len(text.splitlines()) <= 24, "the report has %d lines" % len(text.splitlines()))
    if len(problems) > count:
        problems.insert(count, "---- %s:\n%s" % (when, text))


def main():
    version = torch_version()
    expected = expected_of(version)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="torch_hangs."))
    process = start(expected["ranks"], [], scratch / "hang")
    try:
        if expected.get("ends"):
            process.wait(timeout=PATIENCE_S)
        else:
            stands = wait_until_it_stands(process, expected["ranks"], scratch / "hang", expected.get("may_end", False))
            if stands and not problems:
                check_findings(expected, version, "while it stands", scratch / "hang")
    finally:
        kill(process)
        out, err = process.communicate()
    if problems and process.returncode != -signal.SIGKILL:
        problems.append("its output: %s %s" % (out, err))
    if (scratch / "hang").exists():
        check_findings(expected, version, "when it had ended", scratch / "hang")

    plain = finish(start(expected["ranks"], ["--fixed"], None))
    recorded = finish(start(expected["ranks"], ["--fixed"], scratch / "fixed"))
    expect(plain[0] == 0 and plain[1], "the repaired run: %s" % (plain,))
    expect(recorded == plain, "the recorder changes the run: %s, and without %s" % (recorded, plain))
    status, text = check(scratch / "fixed")
    expect(status == 0 and text.startswith("CONSISTENT"), "the repaired run is not consistent:\n%s" % text)

    if problems:
        print("torch %s, traces in %s" % (version, scratch))
        print("\n".join(problems))
        return 1
    shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
