#!/usr/bin/python3
"""The NCCL build of the reference optimizer, on the stand-in: as shipped it hangs at the embedding and its recording says why;
corrected it completes, is consistent, does what its plan says, and computes what the MPI build computes.

Usage: over_nccl_test.py LOCKSTEP LIBRARY PROGRAM [MPI_PROGRAM MPIRUN]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP, LIBRARY, PROGRAM = sys.argv[1:4]
OVER_MPI = sys.argv[4:6]


def run(ranks, words, folder, record=True):
    """[(status, stderr, stdout)] of each rank."""
    started = []
    for rank in range(ranks):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), ZERO1_NCCL_ID=str(folder / "id"))
        if record:
            env.update(LD_PRELOAD=LIBRARY, LOCKSTEP_DIR=str(folder / "trace"))
        started.append(subprocess.Popen([PROGRAM, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    texts = [process.communicate(timeout=100) for process in started]
    (folder / "id").unlink(missing_ok=True)
    return [(process.returncode, err.decode(), out.decode()) for process, (out, err) in zip(started, texts)]


def lockstep(*arguments):
    return subprocess.run([LOCKSTEP, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)


def rows(csv):
    """Without the time of each step."""
    return [line.rsplit(",", 1)[0] for line in csv.read_text().splitlines()]


class OverNccl(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def test_as_shipped_it_hangs_and_the_recording_says_why(self):
        ended = run(2, ["--partition", "type:embed", "--norm", "per_group", "--timeout", "6"], self.folder)
        for status, text, _ in ended:
            self.assertEqual(status, 75, text)
        done = lockstep("check", self.folder / "trace", "--format", "json")
        self.assertEqual(done.returncode, 1, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["verdict"], report["findings"][0]["class"]), ("deadlock", "count_differs_by_local_state"))
        text = lockstep("check", self.folder / "trace").stdout.decode()
        for words in ("get_grad_norm_direct", "model", "2 times", "once"):
            self.assertIn(words, text)

    def test_corrected_it_completes_as_planned_and_is_consistent(self):
        for norm, more in (("fused", ()), ("agreed_groups", ("--data", "2", "--micro-batches", "2", "--precision", "mixed"))):
            words = ["--partition", "type:embed", "--norm", norm, "--steps", "20", "--timeout", "30", *more]
            self.folder = self.folder / norm
            self.folder.mkdir()
            for status, text, said in run(4 if more else 2, words, self.folder):
                self.assertEqual(status, 0, text)
                # "optimizer groups decay (6272) no_decay (832), optimizer state 42624 bytes"
                groups, state = re.search(r"optimizer groups (.*), optimizer state (\d+) bytes", said).groups()
                replicas = 2 if more else 1
                self.assertEqual(int(state), sum(12 * -(-int(size) // replicas) for size in re.findall(r"\((\d+)\)", groups)))
            done = lockstep("check", self.folder / "trace")
            self.assertEqual(done.returncode, 0, done.stdout)
            plan = self.folder / "plan.json"
            plan.write_bytes(subprocess.run([PROGRAM, *words, "--print-plan"], stdout=subprocess.PIPE, check=True).stdout)
            self.assertEqual(lockstep("gate", plan).returncode, 0)
            done = lockstep("conform", self.folder / "trace", "--plan", plan)
            self.assertEqual(done.returncode, 0, done.stdout.decode())

    @unittest.skipUnless(OVER_MPI, "no MPI build to compare with")
    def test_it_computes_what_the_mpi_build_computes(self):
        program, mpirun = OVER_MPI
        for precision in ("fp64", "fp32", "mixed"):
            # Sums in rank order: not a bit differs.
            words = ["--pipe", "2", "--data", "2", "--partition", "type:embed", "--micro-batches", "2", "--steps", "5", "--ordered", "--timeout", "30",
                     "--precision", precision, "--csv"]
            over_nccl, over_mpi = self.folder / f"{precision}.nccl.csv", self.folder / f"{precision}.mpi.csv"
            for status, text, _ in run(4, [*words, str(over_nccl)], self.folder, record=False):
                self.assertEqual(status, 0, text)
            env = dict(os.environ, OMPI_MCA_mpi_yield_when_idle="1")
            subprocess.run([mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "4", program, *words, str(over_mpi)], env=env, timeout=100,
                           stdout=subprocess.DEVNULL, check=True)
            self.assertEqual(len(rows(over_nccl)), 6)
            self.assertEqual(rows(over_nccl), rows(over_mpi))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
