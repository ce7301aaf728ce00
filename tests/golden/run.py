#!/usr/bin/python3
"""Runs the golden cases: the command of each folder must print what the folder expects.

A case is tests/golden/<case>/ with
  command        the arguments after `lockstep`, as a shell would split them; run in the folder
  expected.txt   what the command prints: stdout, then "--- stderr" and stderr where it is not empty
  expected.json  (optional) what the same command prints with --format json
  exit           (optional) the exit code; 0 where the file is missing
and the input files.

Usage: run.py LOCKSTEP [--update] [CASE...]      --update rewrites what is expected; review the difference
"""
import difflib
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VERSION = re.compile(r"lockstep \d+\.\d+\.\d+")


def run(lockstep, arguments, folder):
    done = subprocess.run([lockstep, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)
    text = done.stdout.decode("utf-8", "replace")
    errors = done.stderr.decode("utf-8", "replace")
    if errors:
        text += "--- stderr\n" + errors
    return done.returncode, VERSION.sub("lockstep VERSION", text)


def compare(name, expected, actual):
    """True: equal. Prints the difference otherwise."""
    if expected == actual:
        return True
    lines = difflib.unified_diff(expected.splitlines(True), actual.splitlines(True), f"{name} (expected)",
                                 f"{name} (now)")
    sys.stdout.write("".join(line if line.endswith("\n") else line + "\n" for line in lines))
    return False


def run_case(lockstep, folder, update):
    arguments = shlex.split((folder / "command").read_text(encoding="utf-8"), comments=True)
    code, text = run(lockstep, arguments, folder)
    json_file = folder / "expected.json"
    wants_json = json_file.exists() or (update and arguments[:1] == ["check"] and code in (0, 1, 5)
                                        and not {"--format", "--help"} & set(arguments))
    json_code, json_text = run(lockstep, arguments + ["--format", "json"], folder) if wants_json else (code, "")
    if update:
        (folder / "expected.txt").write_text(text, encoding="utf-8")
        if wants_json:
            json_file.write_text(json_text.split("--- stderr\n")[0].replace("lockstep VERSION", "lockstep 0.0.0"),
                                 encoding="utf-8")
        (folder / "exit").write_text(f"{code}\n", encoding="utf-8")
        return True
    read = lambda file, otherwise: file.read_text(encoding="utf-8") if file.exists() else otherwise
    good = compare(f"{folder.name}/expected.txt", read(folder / "expected.txt", ""), text)
    if wants_json:
        expected = read(json_file, "").replace("lockstep 0.0.0", "lockstep VERSION")
        good &= compare(f"{folder.name}/expected.json", expected, json_text.split("--- stderr\n")[0])
    expected_code = int(read(folder / "exit", "0"))
    for what, actual in (("exit code", code), ("exit code with --format json", json_code)):
        if actual != expected_code:
            print(f"{folder.name}: {what} {actual}, expected {expected_code}")
            good = False
    return good


def main(arguments):
    update = "--update" in arguments
    arguments = [argument for argument in arguments if argument != "--update"]
    lockstep = str(pathlib.Path(arguments[0]).resolve())
    wanted = set(arguments[1:])
    folders = [file.parent for file in sorted(HERE.glob("*/command"))]
    folders = [folder for folder in folders if not wanted or folder.name in wanted]
    if not folders:
        print("no such case")
        return 1
    failed = [folder.name for folder in folders if not run_case(lockstep, folder, update)]
    print(f"{len(folders)} golden cases, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
