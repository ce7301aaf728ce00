#!/usr/bin/python3
"""Bad and oversized plans: a clear error that names the field, exit 3, in bounded memory and time.

Every command runs with a limit of its address space; one that is killed or runs out of time fails the test.

Usage: bad_plans_test.py LOCKSTEP
"""
import copy
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
MEMORY = 1 << 30
BLOCK = {"class": "Block", "parameters": [{"name": "w", "shape": [8, 8]}, {"name": "b.bias", "shape": [8]}]}
TIED = {"class": "Embed", "tied": "t", "tied_weights": ["w"], "parameters": [{"name": "w", "shape": [32, 8]}]}


def plan(framework="deepspeed", layers=None, **more):
    names = {"deepspeed": "0.16.4", "megatron": "0.16.1", "torch": "2.9.0"}
    return {"framework": {"name": framework, "version": names[framework]}, "topology": {"pipe": 2},
            "layers": layers or [{**BLOCK, "repeat": 4}], "partition": {"method": "uniform"}, "schedule": {"micro_batches": 4}, **more}


def run(*arguments, memory=MEMORY):
    return subprocess.run([LOCKSTEP, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)))


def skips(layers, each):
    """A list in which every layer is connected with so many of those behind it."""
    return [{**BLOCK, "skips_to": list(range(i + 1, min(i + 1 + each, layers)))} for i in range(layers)]


BAD = {
    "micro-batches without end": (plan(schedule={"micro_batches": 10**9}), "$.schedule.micro_batches: must be an integer"),
    "past all integers": (plan(schedule={"micro_batches": 10**30}), "$.schedule.micro_batches"),
    "micro-batches that are none": (plan(schedule={"micro_batches": "many"}), "$.schedule.micro_batches"),
    "as many steps as there may be stages": (plan(topology={"pipe": 64}, layers=[{**BLOCK, "repeat": 64}], schedule={"micro_batches": 65536}),
                                             "$.schedule.micro_batches: 65536 micro-batches in 64 stages"),
    "an order that is searched for": (plan("megatron", schedule={"name": "zb", "micro_batches": 60000}), "$.schedule.micro_batches: 60000"),
    "a forward pass of many layers": (plan("torch", layers=[{**BLOCK, "repeat": 100000}], topology={"data": 2},
                                           optimizer={"stepper": "fsdp2"}, schedule={"name": "none", "micro_batches": 65536}),
                                      "$.schedule.micro_batches: 65536 micro-batches of 100000 layers"),
    "parameters fetched for each micro-batch": (plan(layers=[{**BLOCK, "repeat": 100000}], topology={"data": 2}, zero={"stage": 3},
                                                     schedule={"name": "none", "micro_batches": 65536}), "$.schedule.micro_batches: 65536"),
    "many tensors between stages": (plan(layers=[{**BLOCK, "outputs": [{"shape": [2]}] * 1000, "repeat": 4}], schedule={"micro_batches": 65536}),
                                    "with 1000 tensors between them"),
    "connections times micro-batches": (plan("torch", layers=skips(1200, 1200), topology={"pipe": 4}, schedule={"name": "gpipe", "micro_batches": 4}),
                                        "$.layers: "),
    "connections times layers": (plan("torch", layers=skips(3000, 600), topology={"pipe": 60}, schedule={"name": "1f1b", "micro_batches": 4000}),
                                 "$.layers: "),
    "a connection that goes round": (plan("torch", layers=[BLOCK, {**BLOCK, "skips_to": [0]}], schedule={"name": "gpipe"}), "$.layers[1].skips_to: 0 is no later"),
    "a connection of a layer with itself": (plan("torch", layers=[{**BLOCK, "skips_to": [0]}, BLOCK], schedule={"name": "gpipe"}), "$.layers[0].skips_to: 0"),
    "ties that disagree": (plan(layers=[TIED, BLOCK, {**TIED, "parameters": [{"name": "w", "shape": [8, 32]}]}]), "$.layers: 'Embed' and 'Embed' are tied by 't'"),
    "ties in a circle": (plan(layers=[{**TIED, "tied_weights": ["w"], "tied": "a"}, {**TIED, "tied": {"of": "a"}}]), "$.layers[1].tied"),
    "a tie of a weight that is not there": (plan(layers=[{**TIED, "tied_weights": ["v"]}, BLOCK]), "$.layers[0].tied_weights: there is no parameter 'v'"),
    "a class that is none": (plan(layers=[{**BLOCK, "class": 7}, BLOCK]), "$.layers[0].class"),
    "a word that no layer has": (plan(layers=[{**BLOCK, "clas": "Block"}, BLOCK]), "$.layers[0].clas: no such field"),
    "a pattern that finds nothing": (plan(partition={"method": "type:conv"}), "$.partition.method: Partitioning 'conv' found no valid layers"),
    "a pattern that is none": (plan(partition={"method": "type:(((((("}), "$.partition.method"),
    "a stage without layers": (plan(topology={"pipe": 5}), "$.partition.method: stage 4 holds no layers"),
    "a last stage of a V without layers": (plan("torch", layers=[{**BLOCK, "repeat": 3}], schedule={"name": "zbv", "virtual_stages": 2, "micro_batches": 4}),
                                           "$.partition.method: stage 0 holds no layers"),
    "stated parts without layers": (plan(partition={"parts": [0, 4, 4]}), "$.partition.parts: stage 1 holds no layers"),
    "parts beside a method": (plan(partition={"parts": [0, 2, 4], "method": "uniform"}), "$.partition.parts: contradicts method"),
    "two schedules in one": (plan(schedule={"name": "none", "micro_batches": 4}), "$.schedule.name: 'none' contradicts $.topology.pipe"),
    "ZeRO of two kinds": (plan(zero={"stage": 1}, optimizer={"stepper": "fused"}), "$.optimizer.stepper: fused contradicts $.zero.stage"),
    "ZeRO of a framework without it": (plan("torch", zero={"stage": 1}), "$.zero: only DeepSpeed"),
    "micro-batches that do not divide": (plan("torch", topology={"pipe": 4}, layers=[{**BLOCK, "repeat": 8}],
                                              schedule={"name": "interleaved", "virtual_stages": 2, "micro_batches": 9}), "$.schedule: "),
    "groups of micro-batches that do not divide": (plan("megatron", topology={"pipe": 4}, layers=[{**BLOCK, "repeat": 8}],
                                                        schedule={"name": "interleaved", "virtual_stages": 2, "micro_batches": 6}), "$.schedule: RuntimeError"),
    "an odd way for two": (plan("torch", topology={"pipe": 3}, schedule={"name": "dualpipe", "micro_batches": 8}), "$.schedule: AssertionError"),
    "replicas that do not divide": (plan("torch", topology={"data": 4, "replicate": 3}, schedule={"name": "none"}), "$.topology.replicate: 3 does not divide"),
    "experts that do not divide": (plan("megatron", topology={"data": 3, "expert": 2}, schedule={"name": "none"}), "$.topology: RuntimeError: world_size (3)"),
    "an order of unknown axes": (plan("megatron", topology={"data": 2, "order": "tp-qp-pp"}, schedule={"name": "none"}), "$.topology: RuntimeError"),
    "more ranks than there are": (plan(topology={"pipe": 65536, "data": 65536}), "$.topology: more than"),
}


class BadPlans(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name) / "plan.json"

    def test_each_names_the_field(self):
        for name, (bad, said) in BAD.items():
            self.path.write_text(json.dumps(bad))
            for command in (["gate"], ["plan", "expand"], ["plan", "show"])[:3 if "micro-batch" in name else 1]:
                done = run(*command, self.path)
                with self.subTest(name, command=command):
                    self.assertEqual(done.returncode, 3, (done.stdout[-300:], done.stderr[-300:]))
                    self.assertIn(said, done.stderr)
                    self.assertIn(str(self.path), done.stderr)
                    self.assertLess(len(done.stderr), 2000)

    def test_a_plan_without_anything_wrong_is_taken_under_the_same_limit(self):
        for good in (plan(), plan(partition={"method": "type:" + "(a*)*" * 200 + "$"}), plan("torch", layers=skips(12, 12), schedule={"name": "gpipe", "micro_batches": 8}),
                     plan("megatron", topology={"pipe": 8, "data": 16, "tensor": 8}, layers=[{**BLOCK, "repeat": 8}], schedule={"micro_batches": 512})):
            self.path.write_text(json.dumps(good))
            self.assertIn(run("gate", self.path).returncode, (0, 1))

    def test_pieces_of_a_plan_are_errors_or_plans(self):
        """A plan with any one value replaced by another kind of value: never a crash, and an error has its path."""
        whole = plan("megatron", layers=[TIED, {**BLOCK, "repeat": 2}, TIED], zero=None, optimizer={"stepper": "megatron", "clip_grad": 1})
        del whole["zero"]

        def places(value, path=()):
            yield path
            for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
                yield from places(value[key], path + (key,))

        for path in list(places(whole))[1:]:
            for odd in (None, -1, 1e300, "x" * 70000, [{}]):
                changed = copy.deepcopy(whole)
                at = changed
                for key in path[:-1]:
                    at = at[key]
                at[path[-1]] = odd
                self.path.write_text(json.dumps(changed))
                done = run("gate", self.path)
                self.assertIn(done.returncode, (0, 1, 3), (path, str(odd)[:20], done.stderr[-300:]))
                if done.returncode == 3:
                    self.assertIn("$", done.stderr, (path, str(odd)[:20]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
