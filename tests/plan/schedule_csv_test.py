#!/usr/bin/python3
"""Schedule CSVs of torch pipelining through the commands: what torch refuses, what it does not check, old and new letters, and hostile text.

Usage: schedule_csv_test.py LOCKSTEP
"""
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
MEMORY = 1 << 30
GOOD = "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"
MESSAGES = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"
# csv, row and cell from 1, message, torch refuses it too
WRONG = [
    ("0F0,0F0,0B0\n1F0,1B0\n", "1: cell 2:", "0F0: stands twice, first in row 1, cell 1", False),
    ("0F0,0B0,0B0\n1F0,1B0\n", "1: cell 3:", "0B0: stands twice", False),
    ("0B0,0F0\n1F0,1B0\n", "1: cell 1:", "0B0: comes before the forward", True),
    ("0F0,0W0,0I0\n1F0,1B0\n", "1: cell 2:", "0W0: comes before the backward of the input", True),
    ("0F0,0I0,0B0,0W0\n1F0,1B0\n", "1: cell 3:", "the backward is made in full and in parts", True),
    ("0F0,0F1,0B0\n1F0,1F1,1B0,1B1\n", "1:", "stage 0 has no backward of 1 of 2 micro-batches, first 1", True),
    ("0F0,0B0,1F0\n1B0\n", "2: cell 1:", "stage 1 is on rank 0 already", True),
    ("0F0,0B0\n2F0,2B0\n", "1:", "no row has stage 1", True),
    ("0UNSHARD,0F0,0RESHARD,0B0\n1F0,1B0\n", "1: cell 4:", "0B0: runs while the stage is sharded", False),
    ("0UNSHARD,0F0,0B0\n1F0,1B0\n", "1:", "stage 0 stays unsharded after the last action", False),
    ("0UNSHARD,0UNSHARD,0F0,0B0,0RESHARD\n1F0,1B0\n", "1: cell 2:", "0UNSHARD: the stage is unsharded already", False),
    ("0F0,0B0,0RESHARD\n1F0,1B0\n", "1: cell 3:", "0RESHARD: the stage is not unsharded", False),
    ("0F0,0F1,0B0,0REDUCE_GRAD,0B1\n1F0,1F1,1B0,1B1\n", "1: cell 5:", "0B1: comes after the stage's REDUCE_GRAD", False),
    ("0F0,0B0,(0F1;0B1)OVERLAP_F_B\n1F0,1F1,1B0,1B1\n", "1: cell 3:", "(0F1;0B1)OVERLAP_F_B: both are of one stage", False),
    ("0F0,0F1,(0B0;0B1)OVERLAP_F_B\n1F0,1F1,1B0,1B1\n", "1: cell 3:", "expected a forward and a full backward", False),
    ("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "1: cell 1:", "0F0: its result is not sent to stage 1", False),
    ("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n", "2: cell 1:", "1F0: what it needs of stage 0 is not received", False),
    ("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n", "2: cell 1:", "1F0: comes before its receive, cell 2", False),
    ("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "1: cell 1:", "0SEND_F0: comes before what it sends is computed", False),
    ("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "1: cell 3:", "0SEND_F0: stands twice", False),
    ("0F0,0SEND_B0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "1: cell 2:", "there is no stage on that side", False),
]
HOSTILE = {
    "NUL": "0F0,0B0\x00\n1F0,1B0\n", "NUL alone": "0F0,\x00,0B0\n1F0,1B0\n", "control": "0F0,0B0\x1b[31m\n1F0,1B0\n",
    "half a quote": '"0F0,0B0\n1F0,1B0\n', "words": "0F0,hello\n1F0,1B0\n", "a number past all": "0F99999999999999999999,0B0\n",
    "stages without end": "70000F0,70000B0\n", "negative": "0F-1,0B0\n", "open": "(0F0;0B0,0B0\n", "overlap of one": "(0F0)OVERLAP_F_B\n",
    "nested": "0F1,((0F0;0B0)OVERLAP_F_B;0B1)OVERLAP_F_B\n", "micro-batch of a reduction": "0F0,0B0,0REDUCE_GRAD0\n", "no micro-batch": "0F,0B\n",
    "latin-1": "0F0,0B0\xe9\n",
}


def run(*arguments):
    return subprocess.run([LOCKSTEP, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))


class ScheduleCsv(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def file(self, text, name="s.csv"):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode("latin-1"))
        return path

    def gate(self, text):
        done = run("gate", self.file(text), "--format", "json")
        self.assertTrue(done.stdout.startswith(b"{"), done.stderr)
        return done.returncode, json.loads(done.stdout)

    def test_good_ones_have_no_finding(self):
        for text in (GOOD, MESSAGES, GOOD.replace("\n", "\r\n"), GOOD.replace(",", " , "), "\n\n" + GOOD + "\n", GOOD.rstrip(),
                     ",,0F0,,0F1,0B0,0B1\n,,,1F0,1F1,1B0,1B1,,,\n", "".join(f'"{cell}",' for cell in "0F0 0B0".split()) + "\n"):
            status, report = self.gate(text)
            self.assertEqual((status, report["findings"]), (0, []), text)

    def test_each_check_names_the_cell(self):
        for text, place, said, upstream in WRONG:
            with self.subTest(text):
                done = run("gate", self.file(text), "--format", "json")
                report = json.loads(done.stdout)
                self.assertEqual(done.returncode, 1)
                with_it = [f for f in report["findings"] if said in f["explanation"]]
                self.assertTrue(with_it, [f["explanation"] for f in report["findings"]])
                self.assertIn(f"s.csv:{place}", with_it[0]["explanation"])
                self.assertEqual(with_it[0]["class"], "call_refused" if upstream else "extra_call")
                self.assertEqual("torch does not check this" in with_it[0]["explanation"], not upstream)
                self.assertEqual(with_it[0]["evidence"][0]["line"], int(place.partition(":")[0]))
                # The same is told where a schedule is imported.
                self.assertIn(said.encode(), run("plan", "import", "--torch-csv", self.folder / "s.csv").stderr)

    def test_a_message_that_is_met_too_late_is_a_deadlock(self):
        status, report = self.gate("0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n")
        self.assertEqual(status, 0 if report["verdict"] == "consistent" else 1)
        status, report = self.gate("0F0,0SEND_F0,0F1,0RECV_B0,0B0,0SEND_F1,0RECV_B1,0B1\n1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")
        self.assertEqual((status, report["verdict"]), (1, "deadlock"))

    def test_letters_of_2024(self):
        """Then B was the gradient of the input and BW both."""
        for old, new in (("0F0,0BW0\n1F0,1BW0\n", "0F0,0B0\n1F0,1B0\n"), ("0F0,0B0,0W0\n1F0,1B0,1W0\n", "0F0,0I0,0W0\n1F0,1I0,1W0\n")):
            self.assertEqual(self.gate(old)[0], 0, old)
            flags = ["plan", "schedule", "--framework", "torch", "--stages", 2, "--micro-batches", 1]
            in_old = json.loads(run(*flags, "--csv", self.file(old, "old.csv"), "--old-letters", "true").stdout)
            in_new = json.loads(run(*flags, "--csv", self.file(new, "new.csv")).stdout)
            self.assertEqual(in_old["compute_only"], in_new["compute_only"])
        # Read by the letters of today this one has weights before there is anything for them.
        self.assertNotIn("error", run("plan", "import", "--torch-csv", self.folder / "old.csv", "--old-letters").stderr.decode())

    def test_hostile_text_is_an_error_with_its_place(self):
        for name, text in HOSTILE.items():
            path = self.file(text)
            for command in (["gate", path], ["plan", "import", "--torch-csv", path],
                            ["plan", "schedule", "--framework", "torch", "--csv", path, "--stages", 2, "--micro-batches", 1]):
                done = run(*command)
                with self.subTest(name, command=command[:2]):
                    self.assertIn(done.returncode, (2, 3) if command[0] == "plan" else (3,), (done.stdout[:200], done.stderr[:300]))
                    self.assertIn(b"s.csv", done.stderr)
                    self.assertNotIn(b"\x1b", done.stderr)
                    self.assertNotIn(b"\x00", done.stderr)

    def test_large_ones_are_read_in_bounded_memory(self):
        rows = [",".join([f"{s}F{m}" for m in range(20000)] + [f"{s}B{m}" for m in range(20000)]) for s in range(2)]
        self.assertEqual(self.gate("\n".join(rows))[0], 0)
        status, report = self.gate("0F0," * 1_000_000 + "0B0\n")
        self.assertEqual(status, 1)
        self.assertLess(len(json.dumps(report)), 100_000)
        for text in ("," * 5_000_000, "\n" * 5_000_000 + "0F0", "0F0,0B0\n" * 100_000, "(" * 1_000_000, "65535F65535,0F0,0B0\n"):
            self.assertIn(run("gate", self.file(text)).returncode, (1, 3, 5), text[:20])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
