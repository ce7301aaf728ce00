"""What `lockstep check`, and torch's own analyzer, make of the dumps and logs that run_scenario.py left; a table, and whether all is right.

Usage: judge.py LOCKSTEP FOLDER   (in the environment of torch)
"""
import json
import pathlib
import pickle
import re
import resource
import subprocess
import sys

import scenarios

GRAVE = ("certain", "undefined_behaviour", "contract_violation")
# Its main() alone, and what that took: most of the process is the import of torch.
PEER = """
import sys, time
from torch.distributed.flight_recorder import fr_trace
start = time.process_time()
try:
    fr_trace.main(sys.argv[1:])
finally:
    print(f"SECONDS {time.process_time() - start:.4f}", flush=True)
"""


def timed(command):
    """Output, exit code, CPU seconds of the process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=300, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ours(lockstep, files):
    done, seconds = timed([lockstep, "check", "--format", "json", *map(str, files)])
    if done.returncode == 3:
        return {"verdict": "unreadable", "accused": [], "seconds": seconds, "class": "", "no_majority": False, "says_what_lacks": False}
    report = json.loads(done.stdout)
    grave = [finding for finding in report["findings"] if finding["severity"] in GRAVE]
    accused = {suspect["rank"] for suspect in report["suspects"] if suspect["role"] == "cause" and suspect["confidence"] == "certain"}
    accused.update(grave[0].get("divergent_ranks") or [] if grave else [])
    return {"verdict": report["verdict"], "accused": sorted(accused), "seconds": seconds, "class": grave[0]["class"] if grave else "",
            "no_majority": bool(grave) and grave[0].get("divergent_meaning") == "no_majority",
            "says_what_lacks": any("writes down no messages" in warning for warning in report["input_quality"]["warnings"])}


def with_groups(source, target):
    """Copies of dumps in which every group has its members: those who call in it, and for the default group all."""
    dumps = {path: pickle.loads(path.read_bytes()) for path in source.glob("rank_*")}
    ranks = {path: int(path.name[5:]) for path in dumps}
    members = {}
    for path, dump in dumps.items():
        for entry in dump["entries"]:
            members.setdefault(tuple(entry["process_group"]), set()).add(ranks[path])
    target.mkdir(exist_ok=True)
    for path, dump in dumps.items():
        dump["pg_config"] = {name: {"name": name, "desc": text, "ranks": str(sorted(ranks.values() if text == "default_pg" else group))}
                             for (name, text), group in members.items()}
        (target / path.name).write_bytes(pickle.dumps(dump, protocol=2))
    return target


def theirs(folder):
    done, _ = timed([sys.executable, "-c", PEER, str(folder), "-p", "rank_"])
    seconds = re.search(r"SECONDS ([\d.]+)", done.stdout)
    text = done.stdout.replace(seconds.group(0) if seconds else "", "") + done.stderr
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "Traceback" in text:
        said = "fails: " + lines[-1][:60]
    else:
        kinds = []
        for line in lines:
            culprit = re.search(r"[Cc]ulprit ranks?:? *(\S.*)|missing ranks:? *(\{.*?\})|Missing ranks are:? *(.*)", line)
            if culprit:
                kinds.append("ranks " + next(group for group in culprit.groups() if group)[:24])
            elif "errors" in line.lower() and "no errors" not in line.lower() or "not all ranks" in line.lower() or "cannot decide" in line.lower():
                kinds.append(re.sub(r"^.*?(Not all|Collective|We cannot)", r"\1", line)[:44])
        said = "; ".join(dict.fromkeys(kinds)) or ("silent" if not lines else "no errors found")
        if len(kinds) > 3:
            said += f" ({len(kinds)} lines)"
    return said[:110], float(seconds.group(1)) if seconds else float("nan")


def mark(truth, demand, answer):
    """right, weak (no answer, nobody accused), or WRONG."""
    if not truth.fault:
        return "right" if answer["verdict"] == "consistent" else "weak" if answer["verdict"] in ("insufficient", "unreadable") else "WRONG"
    culprits, accused = set(truth.culprits), set(answer["accused"])
    # Where the records of some ranks are missing, the others may be as many on both sides.
    if answer["verdict"] in truth.verdicts and (accused == culprits or (answer["no_majority"] and culprits < accused)):
        return "right"
    if answer["verdict"] == "consistent" and demand == "blind" and answer["says_what_lacks"]:
        return "weak"
    if answer["verdict"] in ("insufficient", "unreadable") and not answer["accused"]:
        return "weak"
    if answer["verdict"] in truth.verdicts + ("other_cause", "imbalance") and not answer["accused"] and demand != "names":
        return "weak"
    return "WRONG"


def main():
    lockstep, root = sys.argv[1], pathlib.Path(sys.argv[2])
    failures = []
    for name, function in scenarios.SCENARIOS.items():
        truth, folder = function.truth, root / name
        latest = {}
        for kind in ("hanging", "failed"):
            latest.update({path.name: path for path in (folder / kind).glob("rank_*") if path.suffix != ".part"})
        chosen = folder / "dumps"
        chosen.mkdir(exist_ok=True)
        for path in latest.values():
            (chosen / path.name).write_bytes(path.read_bytes())
        log = [folder / "job.log"] if (folder / "job.log").stat().st_size else []
        wanted = f"{'/'.join(truth.verdicts)} {list(truth.culprits)}" if truth.fault else "clean"
        print(f"{name}: {truth.fault or 'no fault'}\n   truth           {wanted}; dumps of {len(latest)} of {truth.ranks} ranks")
        for what, files, demand in (("dumps", sorted(chosen.glob("*")), truth.dumps), ("log", log, truth.logs),
                                    ("both", sorted(chosen.glob("*")) + log, truth.both)):
            if not files:
                continue
            answer = ours(lockstep, files)
            verdict = mark(truth, demand, answer)
            bad = verdict == "WRONG" or (verdict == "weak" and truth.fault and demand == "names")
            if bad:
                failures.append(f"{name}, {what}")
            print(f"   lockstep {what:6} {answer['verdict']:12} {str(answer['accused']):14} {answer['class']:30} {1000 * answer['seconds']:7.1f} ms CPU  "
                  f"{verdict}{'  <- FAILED' if bad else ''}")
        if latest:
            # The analyzer looks every group up in pg_config, where gloo has none.
            for what, place in (("as is", chosen), ("mended", with_groups(chosen, folder / "mended"))):
                said, seconds = theirs(place)
                print(f"   fr_trace {what} {said:72} {1000 * seconds:7.1f} ms CPU without import", flush=True)
    clean = [name for name, function in scenarios.SCENARIOS.items() if not function.truth.fault]
    print(f"{len(scenarios.SCENARIOS) - len(clean)} faults, {len(clean)} clean jobs; " + (f"FAILED: {'; '.join(failures)}" if failures else "all as they have to be"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
