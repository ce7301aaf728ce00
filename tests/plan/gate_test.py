#!/usr/bin/python3
"""`lockstep gate`: any two sources of one kind are compared, only new findings fail, and accepted ones need a reason.

Usage: gate_test.py LOCKSTEP SOURCE_DIR
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP, SOURCE = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
PLANS = SOURCE / "examples/plans"
TRACES = [SOURCE / f"tests/shim/traces/v1/zero1_hang.rank{rank}.lst" for rank in (0, 1)]
GOOD = {"schema": "lockstep-job/1", "groups": {"g": [0, 1], "h": [0, 1]},
        "ranks": {str(rank): ["all_reduce g f32[1] site=norm@a.py:1", "all_reduce h f32[2] site=loss@b.py:2"] for rank in (0, 1)}}
BAD = {**GOOD, "ranks": {"0": GOOD["ranks"]["0"], "1": GOOD["ranks"]["1"][::-1]}}
TWO_BAD = {**GOOD, "groups": {**GOOD["groups"], "x": [2, 3], "y": [2, 3]},
           "ranks": {**BAD["ranks"], "2": ["all_reduce x f32[1]", "all_reduce y f32[1]"], "3": ["all_reduce y f32[1]", "all_reduce x f32[1]"]}}


def gate(*arguments):
    return subprocess.run([LOCKSTEP, "gate", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False)


class Gate(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def test_pairs_of_every_kind(self):
        good, bad = self.file("good.json", GOOD), self.file("bad.json", BAD)
        two = self.file("two.json", TWO_BAD)
        csv = self.file("good.csv", "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n")
        more = self.file("more.csv", "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n")
        twice = self.file("twice.csv", "0F0,0F1,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n")
        embed, uniform = PLANS / "founding_type_embed.json", PLANS / "founding_uniform.json"
        # base, head, exit code
        for base, head, expected in ((good, [good], 0), (good, [bad], 1), (bad, [bad], 0), (bad, [good], 0), (bad, [two], 1), (two, [two], 0),
                                     (csv, [csv], 0), (csv, [more], 0), (csv, [twice], 1), (twice, [twice], 0),
                                     (uniform, [embed], 1), (embed, [uniform], 0), (embed, [embed], 0), (uniform, [bad], 1), (csv, [bad], 1),
                                     (TRACES[0].parent, TRACES, 0), (TRACES[0].parent, [good], 0), (good, TRACES, 1),
                                     (good, [TRACES[0].parent], 1)):
            done = gate("--base", base, "--head", *head)
            self.assertEqual(done.returncode, expected, (base.name, head, done.stdout, done.stderr))

    def test_wrong_usage_says_what_is_wanted(self):
        plan, csv = PLANS / "founding_uniform.json", self.file("good.csv", "0F0,0B0\n1F0,1B0\n")
        for arguments, code, message in (((), 2, "an input is required: a plan"), (("--base", plan), 2, "--base needs --head"),
                                         ((plan, plan), 2, f"{plan}: a plan or schedule is gated alone"), ((plan, csv), 2, "gated alone"),
                                         ((plan, "--suppress", self.file("list.json", [])), 3, '{"suppressions": [')):
            done = gate(*arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(message, done.stderr)

    def test_what_changed_in_calls_is_told(self):
        more = {**GOOD, "ranks": {rank: [*lines, "all_reduce g f32[1]"] for rank, lines in GOOD["ranks"].items()}}
        base, head = self.file("base.json", GOOD), self.file("head.json", more)
        done = gate("--base", base, "--head", head)
        self.assertEqual(done.returncode, 0)
        self.assertIn("all_reduce on g [0,1]: 2 on every rank; in the base 1 on every rank", done.stdout)
        self.assertNotIn("on h", done.stdout)
        changes = json.loads(gate("--base", base, "--head", head, "--format", "json").stdout)["call_changes"]
        self.assertEqual(len(changes), 1)
        self.assertEqual(json.loads(gate("--base", base, "--head", base, "--format", "json").stdout)["call_changes"], [])

    def test_what_is_gone_is_told(self):
        done = gate("--base", self.file("bad.json", BAD), "--head", self.file("good.json", GOOD))
        self.assertIn("no longer found", done.stdout)

    def test_suppressions(self):
        bad = self.file("bad.json", BAD)
        fingerprint = json.loads(gate(bad, "--format", "sarif").stdout)["runs"][0]["results"][0]["partialFingerprints"]["lockstep/v1"]
        by_class = json.loads(gate(bad, "--format", "json").stdout)["findings"][0]["class"]
        # entry, exit code, what is said
        for entry, expected, said in (({"fingerprint": fingerprint, "reason": "known"}, 0, "accepted: known"),
                                      ({"class": by_class, "reason": "known"}, 0, "accepted: known"),
                                      ({"class": by_class, "reason": "known", "expires": "2999-12-31"}, 0, "accepted: known"),
                                      ({"class": by_class, "reason": "known", "expires": "2020-01-31"}, 1, "expired on 2020-01-31"),
                                      ({"fingerprint": "0" * 16, "reason": "old"}, 1, "matches no finding any more"),
                                      ({"class": by_class[:-1], "reason": "typo"}, 1, f"$.suppressions[0].class: no class '{by_class[:-1]}'; did you mean"),
                                      ({"class": by_class}, 3, "$.suppressions[0].reason: is missing"),
                                      ({"class": by_class, "reason": "  "}, 3, "reason: is missing"),
                                      ({"reason": "all"}, 3, "give either this or class"),
                                      ({"class": by_class, "fingerprint": fingerprint, "reason": "x"}, 3, "give either this or class"),
                                      ({"class": by_class, "reason": "x", "expires": "tomorrow"}, 3, "must be a date"),
                                      ({"class": by_class, "reason": "x", "expires": "9999-99-99"}, 3, "must be a date"),
                                      ({"class": by_class, "reason": "x", "expires": "2026--1-11"}, 3, "must be a date"),
                                      ({"class": by_class, "reason": "x", "until": "x"}, 3, "no such field")):
            done = gate(bad, "--suppress", self.file("accepted.json", {"suppressions": [entry]}))
            self.assertEqual(done.returncode, expected, (entry, done.stdout, done.stderr))
            self.assertIn(said, done.stdout + done.stderr)
        self.assertEqual(gate(bad, "--suppress", self.file("no.json", "{")).returncode, 3)

    def test_a_new_finding_passes_no_suppression_of_another(self):
        done = gate(self.file("two.json", TWO_BAD), "--format", "json")
        prints = [r["partialFingerprints"]["lockstep/v1"] for r in json.loads(gate(self.folder / "two.json", "--format", "sarif").stdout)["runs"][0]["results"]]
        self.assertGreaterEqual(len(set(prints)), 2, done.stdout)
        self.assertEqual(gate(self.folder / "two.json", "--suppress", self.file("a.json", {"suppressions": [
            {"fingerprint": prints[0], "reason": "known"}]})).returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
