#!/usr/bin/python3
"""`lockstep plan import --deepspeed`: what decides about calls is taken over, said, or refused with its field.

Usage: import_deepspeed_test.py LOCKSTEP
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP = sys.argv[1]
LAYERS = [{"class": "Block", "repeat": 4, "parameters": [{"name": "w", "shape": [8, 8]}, {"name": "b.bias", "shape": [8]}]}]


class ImportDeepSpeed(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_import(self, config, *arguments, layers=None):
        (self.folder / "ds_config.json").write_text(json.dumps(config))
        (self.folder / "layers.json").write_text(json.dumps(LAYERS if layers is None else layers))
        return subprocess.run([LOCKSTEP, "plan", "import", "--deepspeed", "ds_config.json", "--layers", "layers.json", *map(str, arguments)],
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)

    def plan(self, config, *arguments):
        done = self.run_import(config, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.folder / "plan.json").write_text(done.stdout)
        gate = subprocess.run([LOCKSTEP, "gate", "plan.json"], cwd=self.folder, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
        return json.loads(done.stdout), done.stderr, gate.returncode

    def test_second_copies_are_taken_over(self):
        plan, said, gate = self.plan({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 4, "mics_shard_size": -1}}, "--data", 8)
        self.assertEqual((plan["zero"]["zero_hpz_partition_size"], said, gate), (4, "", 0))
        plan, said, _ = self.plan({"zero_optimization": {"stage": 1, "zero_hpz_partition_size": 4}}, "--data", 8)
        self.assertNotIn("zero_hpz_partition_size", plan["zero"])  # nor does DeepSpeed look at it there

    def test_bf16_steps_by_what_gradients_are_added_up_in(self):
        config = {"bf16": {"enabled": True}, "zero_optimization": {"stage": 1}}
        plan, _, _ = self.plan(config, "--pipe", 2)
        self.assertNotIn("stepper", plan["optimizer"])
        plan, _, _ = self.plan({**config, "data_types": {"grad_accum_dtype": "fp32"}}, "--pipe", 2)
        self.assertEqual(plan["optimizer"]["stepper"], "bf16")

    def test_what_is_not_taken_over_is_said(self):
        for config, place in (({"zero_optimization": {"stage": 2, "round_robin_gradients": True}}, "$.zero_optimization.round_robin_gradients"),
                              ({"zero_optimization": {"stage": 3, "zero_quantized_weights": True}}, "$.zero_optimization.zero_quantized_weights"),
                              ({"sparse_gradients": True}, "$.sparse_gradients"),
                              ({"optimizer": {"type": "OneBitAdam"}}, "$.optimizer.type: OneBitAdam")):
            _, said, _ = self.plan(config, "--data", 2)
            self.assertEqual(said.count("not in the plan"), 1, said)
            self.assertIn(f"ds_config.json: {place}", said)
        _, said, _ = self.plan({"zero_optimization": {"stage": 2, "reduce_scatter": True, "overlap_comm": True, "round_robin_gradients": False},
                                "sparse_gradients": False, "optimizer": {"type": "AdamW"}}, "--data", 2)
        self.assertEqual(said, "")

    def test_errors_name_the_file(self):
        for config, arguments, layers, message in (
                ({"zero_optimization": {"stage": 3, "mics_shard_size": 2}}, ("--data", 4), None,
                 "ds_config.json: $.zero_optimization.mics_shard_size: MiCS is not expanded"),
                ({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 3}}, ("--data", 4), None,
                 "ds_config.json: $.zero.zero_hpz_partition_size: DeepSpeed refuses this: 4 ranks are not divisible by 3"),
                ({"zero_optimization": {"stage": 3}}, ("--pipe", 2), None, "ds_config.json: $.zero.stage: ZeRO-2 and ZeRO-3"),
                ({}, (), [{"class": 3}], "layers.json: $.layers[0].class")):
            done = self.run_import(config, *arguments, layers=layers)
            self.assertEqual(done.returncode, 3)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
