#!/usr/bin/python3
"""`lockstep conform`: records made from a plan's own iterations conform however groups are called, however many steps there are and
whatever else the job does; one changed call is found where it is. And the recordings of the founding case.

Usage: conform_test.py LOCKSTEP SOURCE_DIR SHARED
"""
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP, SOURCE, SHARED = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
PLANS = SOURCE / "examples/plans"
TRACES = SHARED / "traces/deepspeed_1522"


def run(*arguments):
    return subprocess.run([LOCKSTEP, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)


def record(plan, iterations):
    """A Job that makes these iterations, one after the other, and says nothing of what only a plan knows."""
    job = {"schema": "lockstep-job/1", "groups": {}, "ranks": {}}
    for iteration in iterations:
        one = json.loads(run("plan", "expand", PLANS / plan, "--iteration", iteration).stdout)
        job["groups"].update(one["groups"])
        for rank, lines in one["ranks"].items():
            job["ranks"].setdefault(rank, []).extend(re.sub(r" (label|payload|site)=[^\s;\]]*", "", line) for line in lines)
    return job


def renamed(job):
    """The same with other names of groups, their members in another order of the file."""
    names = {name: f"ProcessGroup<{i}>" for i, name in enumerate(reversed(list(job["groups"])))}
    lines = {rank: [" ".join(names.get(word, word) for word in line.split(" ")) for line in lines] for rank, lines in job["ranks"].items()}
    return {**job, "groups": {names[name]: job["groups"][name] for name in reversed(list(names))}, "ranks": lines}


class Conform(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def conform(self, job, plan):
        path = self.folder / "job.json"
        path.write_text(json.dumps(job))
        done = run("conform", path, "--plan", PLANS / plan, "--format", "json")
        report = json.loads(done.stdout)
        self.assertEqual({"conforms": 0, "differs": 1, "insufficient": 5}[report["conformance"]], done.returncode)
        return report["conformance"], report

    def test_any_number_of_iterations_under_any_names(self):
        for plan in ("founding_type_transformer.json", "founding_data_parallel.json", "gpt_3d.json", "megatron_interleaved.json", "fsdp2.json"):
            for iterations in (["first"], ["first", "second"], ["second", "steady", "steady"], ["first", "second"] + ["steady"] * 5):
                for change in (lambda job: job, renamed):
                    self.assertEqual(self.conform(change(record(plan, iterations)), plan)[0], "conforms", (plan, iterations))
        skipped = record("founding_type_transformer.json", ["first", "skipped", "second", "skipped", "skipped", "steady"])
        self.assertEqual(self.conform(skipped, "founding_type_transformer.json")[0], "conforms")

    def test_what_the_plan_does_not_claim_is_ignored(self):
        plan = "founding_type_transformer.json"
        job = record(plan, ["first", "second"])
        job["groups"]["checkpoint"] = [0, 1]  # the members of a group that is planned
        job["groups"]["logging"] = [0]
        for lines in job["ranks"].values():
            lines[:0] = ["broadcast checkpoint i64[3] root=0", "barrier checkpoint"]  # set-up
            lines.append("barrier checkpoint")
        self.assertEqual(self.conform(job, plan)[0], "conforms")
        world = record("gpt_3d.json", ["first", "second"])
        world["groups"]["odd"] = [0, 5, 6]  # between any two calls
        for rank in ("0", "5", "6"):
            lines = world["ranks"][rank]
            for at in sorted(random.Random(1).sample(range(len(lines)), 9), reverse=True):
                lines.insert(at, "all_reduce odd f32[1]")
        self.assertEqual(self.conform(world, "gpt_3d.json")[0], "conforms")

    def test_a_record_that_is_cut_conforms_as_far_as_it_goes(self):
        plan = "founding_type_transformer.json"
        for kept in range(1, 6):
            job = record(plan, ["first", "second"])
            for lines in job["ranks"].values():
                del lines[len(lines) - kept:]
            conformance, report = self.conform(job, plan)
            self.assertEqual((conformance, report["verdict"]), ("conforms", "insufficient"))
            self.assertIn("ends inside step 1", " ".join(report["input_quality"]["warnings"]))
        job["ranks"]["1"] = []
        self.assertEqual(self.conform(job, plan)[0], "insufficient")
        self.assertEqual(self.conform({"groups": {"g": [0, 1]}, "ranks": {"0": ["barrier g"], "1": ["barrier g"]}}, plan)[0], "insufficient")

    def test_one_changed_call_is_found_where_it_is(self):
        generator = random.Random(5)
        for plan in ("founding_type_transformer.json", "founding_bf16.json"):  # each line is one call
            whole = record(plan, ["first", "second", "steady"])
            first = {rank: len(lines) for rank, lines in record(plan, ["first", "second"])["ranks"].items()}
            for _ in range(40):
                job = json.loads(json.dumps(whole))
                rank = generator.choice(list(job["ranks"]))
                lines = job["ranks"][rank]
                at = generator.randrange(first[rank] + 1, len(lines) - 1)
                kind = generator.choice(["count", "type", "drop", "twice"])
                old = lines[at]
                if kind == "count":
                    lines[at] = re.sub(r"\[(\d+)\]", lambda m: f"[{int(m[1]) + 1}]", old)
                elif kind == "type":
                    lines[at] = re.sub(r"\b(f16|bf16|f32|u8|i64)\[", "f64[", old)
                elif kind == "drop":
                    if lines[at + 1] == old:
                        continue  # the next call stands in its place
                    del lines[at]
                else:
                    lines.insert(at, "reduce_scatter " + " ".join(w for w in old.split(" ") if w in job["groups"])[:40] + " f32[7] redop=sum")
                    if not any(word in job["groups"] for word in old.split(" ")):
                        continue
                if lines == whole["ranks"][rank]:
                    continue
                conformance, report = self.conform(renamed(job), plan)
                self.assertEqual(conformance, "differs", (plan, rank, at, kind, old))
                title = report["findings"][0]["title"]
                self.assertIn(f"rank {rank} leaves its plan in step 2, call {at - first[rank]}", title, (kind, old))

    @unittest.skipUnless(TRACES.is_dir(), "no recordings")
    def test_the_recordings_of_the_founding_case(self):
        def recorded(case, plan):
            done = run("conform", *sorted(TRACES.glob(f"{case}.rank?.jsonl")), "--plan", PLANS / plan, "--format", "json")
            return done.returncode, json.loads(done.stdout)
        for case, plan in (("a_type_transformer", "founding_type_transformer.json"), ("i_embed_fixed", "founding_fused.json"),
                           ("f_uniform", "founding_uniform.json"), ("e_embed_or_transformer", "founding_type_embed_or_transformer.json")):
            self.assertEqual(recorded(case, plan)[0], 0, case)
        # It hung on its way through its own plan, which cannot be ended either.
        status, report = recorded("b_type_embed", "founding_type_embed.json")
        self.assertEqual((status, report["verdict"], report["conformance"]), (5, "insufficient", "insufficient"))
        self.assertIn("the plan itself cannot be run to its end: deadlock", report["findings"][0]["title"])
        self.assertEqual(report["findings"][0]["severity"], "note")
        said = " ".join(report["input_quality"]["warnings"])
        self.assertRegex(said, r"rank 0 ends inside step 0, after 15 calls of it: at all_reduce on model f32\[1\] \(get_grad_norm_direct\), "
                               r"optimizer group 2 of 2 \(no-decay\); the plan goes on with all_gather on data")
        # It leaves the plan of another partition with the shapes of what the stages hand on (one tensor there, a tuple here), and that of the
        # repair where the norm is reduced a second time.
        status, report = recorded("b_type_embed", "founding_type_transformer.json")
        self.assertEqual((status, report["conformance"], report["findings"][0]["class"]), (1, "differs", "size_differs"))
        self.assertEqual(report["findings"][0]["title"], "rank 0 leaves its plan in step 0, call 2")
        self.assertIn("i64[3]", report["findings"][0]["explanation"])
        self.assertIn("SendActivation PipelineEngine._send_tensor_meta", report["findings"][0]["explanation"])
        status, report = recorded("b_type_embed", "founding_fused.json")
        self.assertEqual(status, 1)
        self.assertEqual(report["findings"][0]["title"], "rank 0 leaves its plan in step 0, call 13")
        self.assertIn("get_grad_norm_direct", report["findings"][0]["explanation"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
