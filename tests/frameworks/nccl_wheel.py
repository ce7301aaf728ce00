#!/usr/bin/env python3
"""Compares libshim/nccl with a version of NCCL: its header (signatures, values, layouts, by the compiler) and the names that its library
exports. nccl_wheel.py HEADER_DIRECTORY LIBRARY [CUDA_INCLUDE_DIRECTORY]; either may be "-". Ends with 1 and says what is missing."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NCCL = ROOT / "libshim" / "nccl"
ROW = re.compile(r"^NCCL_(?:CALL|PLAIN)\(\d+, (?:(?:ncclResult_t|void|const char\*), )?(\w+),", re.M)


def rows() -> set:
    return {"nccl" + name for name in ROW.findall((NCCL / "functions.def").read_text())}


def listed() -> set:
    lines = (NCCL / "not_interposed.txt").read_text().splitlines()
    entries = [line.split("\t") for line in lines if line and not line.startswith("#")]
    for entry in entries:
        if len(entry) != 2 or not entry[1].strip():
            sys.exit(f"not_interposed.txt: {entry[0]} has no reason")
    return {entry[0] for entry in entries}


def exported(library: str) -> set:
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {words[2].split("@")[0] for words in map(str.split, text.splitlines()) if len(words) == 3}


def declared(directory: str) -> set:
    text = pathlib.Path(directory, "nccl.h").read_text()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return set(re.findall(r"\b(?:ncclResult_t|void|const char\s*\*)\s*(nccl[A-Z]\w*)\s*\(", text))


def main() -> int:
    header, library = sys.argv[1], sys.argv[2]
    cuda = sys.argv[3] if len(sys.argv) > 3 else "/usr/local/cuda/include"
    table, others = rows(), listed()
    problems = [f"{name} is both a row and in not_interposed.txt" for name in sorted(table & others)]
    if library != "-":
        names = {name for name in exported(library) if not name.startswith("pnccl")}
        unknown = sorted(names - table - others)
        problems += [f"{library} exports {name}: no row in functions.def and no line in not_interposed.txt" for name in unknown]
        print(f"{library}: {len(names)} names, {len(unknown)} unknown")
    if header != "-":
        unknown = sorted(declared(header) - table - others)
        problems += [f"{header}/nccl.h declares {name}: no row in functions.def and no line in not_interposed.txt" for name in unknown]
        if not pathlib.Path(cuda, "cuda_runtime.h").is_file():
            print(f"no cuda_runtime.h in {cuda}: the signatures are not compared")
        else:
            command = ["c++", "-std=c++20", "-fsyntax-only", f"-I{NCCL.parent}", "-isystem", header, "-isystem", cuda,
                       str(NCCL / "header_check.cc")]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode != 0:
                problems.append(f"{header}/nccl.h differs:\n{result.stderr}")
            else:
                print(f"{header}/nccl.h: every signature, value and layout is the same")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
