#!/usr/bin/python3
"""The report in the README is what the command prints.

Usage: readme_test.py LOCKSTEP REPOSITORY
"""
import difflib
import pathlib
import re
import shlex
import subprocess
import sys


def main():
    lockstep, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    text = (root / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^    \$ lockstep (check .*)\n((?:    .*\n)+)", text, re.MULTILINE)
    if shown is None:
        print("README.md shows no report")
        return 1
    arguments = []
    for word in shlex.split(shown[1]):
        files = sorted(str(path.relative_to(root)) for path in root.glob(word)) if "*" in word else [word]
        arguments += files
    printed = subprocess.run([lockstep, *arguments], cwd=root, stdout=subprocess.PIPE, check=False).stdout.decode()
    expected = "".join(line[4:] + "\n" for line in shown[2].splitlines())
    sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), printed.splitlines(True), "README.md", "now"))
    return 0 if printed == expected else 1


sys.exit(main())
