#!/usr/bin/python3
"""`lockstep plan import --megatron`: arguments become plans that hold, in either form; what Megatron refuses is refused by name.

Usage: import_megatron_test.py LOCKSTEP WITH_YAML
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP, WITH_YAML = sys.argv[1], sys.argv[2] in ("1", "TRUE", "ON")
MODEL = {"num_layers": 16, "hidden_size": 64, "num_attention_heads": 8, "seq_length": 32, "micro_batch_size": 1, "vocab_size": 1000}
PIPE, VIRTUAL = "pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank"


def run(*arguments):
    return subprocess.run([LOCKSTEP, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)


def words(arguments):
    return " ".join("--" + name.replace("_", "-") + ("" if value is True else f" {value}")
                    for name, value in arguments.items() if value is not False)


def imported(arguments, world):
    return run("plan", "import", "--megatron=" + words(arguments), "--world", world)


class ImportMegatron(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def plan(self, more, world):
        done = imported({**MODEL, **more}, world)
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.folder / "plan.json").write_bytes(done.stdout)
        gate = run("gate", self.folder / "plan.json")
        self.assertEqual(gate.returncode, 0, gate.stdout)
        return json.loads(done.stdout)

    def test_plans_hold(self):
        for world, more in ((1, {}), (8, {"tensor_model_parallel_size": 2, PIPE: 2, "global_batch_size": 8}),
                            (4, {PIPE: 4, VIRTUAL: 2, "global_batch_size": 8, "use_distributed_optimizer": True, "bf16": True}),
                            (4, {PIPE: 4, "num_layers_per_virtual_pipeline_stage": 1, "no_overlap_p2p_communication": True,
                                 "global_batch_size": 8}),
                            (8, {PIPE: 2, "num_experts": 8, "expert_model_parallel_size": 4, "moe_layer_freq": "[0]*1+[1]*15"}),
                            (16, {PIPE: 2, "tensor_model_parallel_size": 2, "context_parallel_size": 2, "use_tp_pp_dp_mapping": True,
                                  "num_experts": 2, "expert_model_parallel_size": 2}),
                            (6, {PIPE: 3, "account_for_embedding_in_pipeline_split": True, "account_for_loss_in_pipeline_split": True}),
                            (4, {PIPE: 4, "decoder_first_pipeline_num_layers": 2, "decoder_last_pipeline_num_layers": 2})):
            plan = self.plan(more, world)
            topology = plan["topology"]
            self.assertEqual(topology["pipe"] * topology["data"] * topology["tensor"] * topology["context"], world)

    def test_what_is_not_taken_over_is_said(self):
        for more, place in (({"mtp_num_layers": 1}, "--mtp-num-layers"), ({"use_torch_fsdp2": True}, "--use-torch-fsdp2"),
                            ({"optimizer": "muon"}, "--optimizer: 'muon'")):
            done = imported({**MODEL, **more}, 2)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{place} is not in the plan".encode(), done.stderr)
        self.assertEqual(imported({**MODEL, "optimizer": "adam", "log_interval": 10, "spec": "None", "ckpt_fully_parallel_save": True}, 2).stderr, b"")
        done = imported({**MODEL, "pipeline_parallel_size": 2}, 2)  # of another release, or misspelt
        self.assertIn(b"--pipeline-parallel-size is not known, and not in the plan", done.stderr)

    def test_stages_are_cut_as_megatron_cuts_them(self):
        # The list of a plan: embedding, 16 transformer layers, final norm, output.
        for more, parts in (({PIPE: 4}, [0, 5, 9, 13, 19]), ({PIPE: 2, VIRTUAL: 2}, [0, 5, 9, 13, 19]),
                            ({PIPE: 4, "decoder_first_pipeline_num_layers": 3, "decoder_last_pipeline_num_layers": 1}, [0, 4, 10, 16, 19]),
                            ({PIPE: 3, "account_for_embedding_in_pipeline_split": True, "account_for_loss_in_pipeline_split": True}, [0, 6, 12, 19]),
                            ({PIPE: 2, "pipeline_model_parallel_layout": "Et*7|t*9,L"}, [0, 8, 19]),
                            ({PIPE: 2, "pipeline_model_parallel_layout": "Ett|(tttt|)*2,t*6L"}, [0, 3, 7, 11, 19])):
            self.assertEqual(self.plan({**more, "global_batch_size": 4}, more[PIPE])["partition"]["parts"], parts)

    def test_layouts_that_are_none(self):
        for layout, message in (("Et*15|L", "has 15 layers, not the 16 of num-layers"), ("Et*16|mL", "multi-token prediction"),
                                ("Et*8|t*8|L", "3 parts, which are not divisible by 2"), ("t*16|EL", "must begin with the embedding"),
                                ("Ex|t*16L", "has the letter 'x'"), ("E(t|t*15L", "is no layout"), ("Et*|t*16L", "is no layout"),
                                ("Et*99999999999|L", "is no layout"), ("E(((t*9999)*9999)*9999|L", "is no layout"),
                                ("|", "must begin with")):
            done = run("plan", "import", f"--megatron={words({**MODEL, PIPE: 2})} --pipeline-model-parallel-layout='{layout}'", "--world", 2)
            self.assertEqual(done.returncode, 3, layout)
            self.assertIn(b"--pipeline-model-parallel-layout: ", done.stderr)
            self.assertIn(message.encode(), done.stderr)
        done = imported({**MODEL, PIPE: 2, VIRTUAL: 2, "pipeline_model_parallel_layout": "Et*7|t*9,L"}, 2)
        self.assertIn(b"exclude each other", done.stderr)

    def test_shapes_are_those_of_one_rank(self):
        plan = self.plan({"tensor_model_parallel_size": 2, "swiglu": True, "disable_bias_linear": True, "normalization": "RMSNorm",
                          "group_query_attention": True, "num_query_groups": 4, "ffn_hidden_size": 256, "bf16": True}, 2)
        shapes = {one["name"]: one["shape"] for layer in plan["layers"] for one in layer["parameters"]}
        self.assertEqual(shapes["word_embeddings.weight"], [512, 64])  # 1000 words in steps of 2 x 128
        self.assertEqual(shapes["self_attention.linear_qkv.weight"], [64, 64])  # 4 heads and 2 x 2 groups of 8
        self.assertEqual(shapes["mlp.linear_fc1.weight"], [256, 64])
        self.assertEqual(shapes["mlp.linear_fc2.weight"], [64, 128])
        self.assertNotIn("mlp.linear_fc1.bias", shapes)
        self.assertNotIn("input_layernorm.bias", shapes)

    def test_what_megatron_refuses_is_refused_by_name(self):
        for world, more, said in (
                (4, {"tensor_model_parallel_size": 3}, "--world-size: 4 ranks are not divisible by"),
                (3, {PIPE: 3}, "--num-layers: 16 layers are not divisible by 3 pipeline stages"),
                (2, {PIPE: 2, VIRTUAL: 2, "no_overlap_p2p_communication": True}, "needs more than 2 pipeline stages"),
                (1, {VIRTUAL: 2}, "needs more than 1 pipeline stage"),
                (4, {PIPE: 4, "num_layers_per_virtual_pipeline_stage": 3}, "4 layers of a stage are not divisible by 3"),
                (4, {PIPE: 4, VIRTUAL: 2, "num_layers_per_virtual_pipeline_stage": 2}, "exclude each other"),
                (4, {PIPE: 4, VIRTUAL: 2, "global_batch_size": 6}, "RuntimeError: The remainder of M"),
                (4, {PIPE: 4, VIRTUAL: 2, "global_batch_size": 2}, "ValueError: The number of contiguous micro-batches"),
                (2, {"global_batch_size": 3}, "--global-batch-size: 3 is not divisible by"),
                (2, {"bf16": True, "fp16": True}, "--fp16: and bf16 exclude each other"),
                (2, {"overlap_param_gather": True}, "--overlap-param-gather: needs use-distributed-optimizer"),
                (4, {"num_experts": 6, "expert_model_parallel_size": 4}, "--num-experts: 6 is not divisible by 4"),
                (2, {"expert_model_parallel_size": 2}, "--expert-model-parallel-size: needs num-experts"),
                (1, {"num_experts": 2, "moe_layer_freq": "[0,1]*3"}, "does not have an entry for each of 16 layers"),
                (1, {"num_experts": 2, "moe_layer_freq": "often"}, "'often' is no number and no list"),
                (1, {"hidden_size": 65}, "--hidden-size: 65 is not divisible by 8"),
                (1, {"hidden_size": "$HIDDEN"}, "is a variable of the shell"),
                (1, {"num_layers": 10**9}, "--num-layers: must be an integer between 1 and"),
                (1, {"model_parallel_size": 2}, "no argument of Megatron any more"),
                # An order of ranks that the generator of groups refuses.
                (16, {PIPE: 2, "tensor_model_parallel_size": 2, "use_tp_pp_dp_mapping": True, "context_parallel_size": 2},
                 "AssertionError: When not using pp-last rank ordering")):
            done = imported({**MODEL, **more}, world)
            self.assertEqual(done.returncode, 3, more)
            self.assertIn(said, done.stderr.decode())
            self.assertEqual(done.stdout, b"")
        self.assertIn(b"give --world", run("plan", "import", "--megatron=" + words(MODEL)).stderr)

    def test_a_script_and_yaml_say_the_same(self):
        arguments = {**MODEL, PIPE: 4, VIRTUAL: 2, "global_batch_size": 16, "bf16": True, "use_distributed_optimizer": True, "num_experts": 4,
                     "untie_embeddings_and_output_weights": True}
        script = self.folder / "run.sh"
        script.write_text("#!/bin/bash\nARGS=(\n" + "".join(f"  --{k.replace('_', '-')} {'' if v is True else v}  # a comment --num-layers 3\n"
                                                          for k, v in arguments.items()) + ")\r\ntorchrun --nproc_per_node=8 train.py \\\n \"${ARGS[@]}\"\n")
        done = run("plan", "import", "--megatron", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        self.assertEqual(plan["topology"]["data"], 2)
        if not WITH_YAML:
            return
        yaml = self.folder / "run.yaml"
        model = {k: v for k, v in arguments.items() if k in MODEL}
        yaml.write_text("language_model:\n" + "".join(f"  {k}: {v}\n" for k, v in model.items()) + "".join(
            f"{k}: {v}\n" for k, v in arguments.items() if k not in model) + "lr: null\n")
        done = run("plan", "import", "--megatron-yaml", yaml, "--world", 8)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({**json.loads(done.stdout), "name": ""}, {**plan, "name": ""})

    def test_hostile_files_end_with_an_error(self):
        bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi"))
        wide = "s: &s {" + ", ".join(f"k{i}: 1" for i in range(4000)) + "}\nt: {" + ", ".join(f"x{i}: *s" for i in range(4000)) + "}\n"
        for text in (bomb, wide, "[" * 100_000, "{" * 100_000, "a: [", "a: 1\na: 2\n", "- 1\n", "\0\0\0", "", "a: !!python/object x", "x" * (1 << 21),
                     "num_layers: {num_layers: 3}", "%YAML 99\n---\n", "\xff\xfe"):
            file = self.folder / "hostile"
            file.write_bytes(text.encode("latin-1"))
            for option in ("--megatron", "--megatron-yaml"):
                done = run("plan", "import", option, file, "--world", 2)
                self.assertEqual(done.returncode, 3, (option, text[:40], done.stdout[:100]))
                self.assertIn(b"hostile", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
