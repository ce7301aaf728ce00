#!/usr/bin/env python3
"""Instructions per operation of expanding, matching and replaying a plan, by valgrind's callgrind: what code costs on any
machine, however busy it is. Usage: instructions.py path/to/symmetry_bench [PIPE DATA TENSOR MICRO_BATCHES]"""
import os
import re
import subprocess
import sys
import tempfile

PHASES = {"expansion": "lockstep::plan::expand(", "matching": "lockstep::match(", "replay": "lockstep::replay("}


def main():
    bench, *size = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "callgrind.out")
        printed = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", bench, "all",
             *(size or ["8", "8", "4", "128"])],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        table = subprocess.run(["callgrind_annotate", "--inclusive=yes", profile],
                               check=True, stdout=subprocess.PIPE, text=True).stdout
    operations = int(re.search(r"of (\d+) operations", printed).group(1))
    costs = [(int(line.split()[0].replace(",", "")), line) for line in table.splitlines() if re.match(r" *[\d,]+ \(", line)]
    total = next(cost for cost, line in costs if "PROGRAM TOTALS" in line)
    print(f"{operations} operations: {total / operations:.0f} instructions/operation")
    for phase, function in PHASES.items():
        print(f"  {phase} {max((cost for cost, line in costs if function in line), default=0) / operations:.0f}")


main()
