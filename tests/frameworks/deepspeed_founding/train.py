"""The founding case on an installed DeepSpeed: a small GPT with tied embedding, cut over two stages, ZeRO stage 1, gloo.

One process of two; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are in the environment. Prints one JSON line for each step.
"""
import argparse
import faulthandler
import json
import os
import signal
import sys

import torch
from torch import nn

WORDS, HIDDEN, SEQUENCE, BATCH = 32, 16, 8, 2


class EmbeddingPipe(nn.Module):
    """Word and position embedding; its words are the output projection as well."""

    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(WORDS, HIDDEN)
        self.position = nn.Embedding(SEQUENCE, HIDDEN)

    def forward(self, tokens):
        return self.word(tokens) + self.position(torch.arange(tokens.shape[1]))


class ParallelTransformerLayerPipe(nn.Module):
    def __init__(self):
        super().__init__()
        self.first_norm = nn.LayerNorm(HIDDEN)
        self.attention = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.output = nn.Linear(HIDDEN, HIDDEN)
        self.second_norm = nn.LayerNorm(HIDDEN)
        self.wide = nn.Linear(HIDDEN, 4 * HIDDEN)
        self.narrow = nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        q, k, v = self.attention(self.first_norm(x)).chunk(3, dim=-1)
        x = x + self.output(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.narrow(nn.functional.gelu(self.wide(self.second_norm(x))))


def logits(module, x):
    return nn.functional.linear(x, module.word.weight)


def loss_of(output, targets):
    return nn.functional.cross_entropy(output.flatten(0, 1), targets.flatten())


def specs():
    from deepspeed.pipe import LayerSpec, TiedLayerSpec
    blocks = [LayerSpec(ParallelTransformerLayerPipe) for _ in range(2)]
    return [
        TiedLayerSpec("embed", EmbeddingPipe, tied_weight_attr="word.weight"), *blocks,
        LayerSpec(nn.LayerNorm, HIDDEN),
        TiedLayerSpec("embed", EmbeddingPipe, forward_fn=logits, tied_weight_attr="word.weight")
    ]


def optimizer_groups(model):
    """Weights with decay; biases and layer norms without: one of the two is empty where a stage owns the embedding alone."""
    decay, no_decay = [], []
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            (no_decay if name == "bias" or isinstance(module, nn.LayerNorm) else decay).append(parameter)
    return [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}]


def batches():
    generator = torch.Generator().manual_seed(7)
    while True:
        text = torch.randint(0, WORDS, (BATCH, SEQUENCE + 1), generator=generator)
        yield text[:, :-1], text[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--partition", default="type:embed")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--fix", action="store_true", help="import examples/deepspeed_fix first")
    parser.add_argument("--stacks-after", type=float, default=0, help="seconds; without a step; print all stacks and end")
    options = parser.parse_args()

    import deepspeed
    if options.fix:
        import lockstep_deepspeed_fix
        for line in lockstep_deepspeed_fix.apply():
            print(line, file=sys.stderr)
    deepspeed.init_distributed("gloo")
    torch.manual_seed(1234)
    torch.set_num_threads(1)
    from deepspeed.pipe import PipelineModule
    model = PipelineModule(specs(), num_stages=2, loss_fn=loss_of, partition_method=options.partition, seed_layers=True,
                           seed_fn=lambda seed: torch.manual_seed(int(seed)),
                           base_seed=1234)
    groups = optimizer_groups(model)
    optimizer = torch.optim.AdamW(groups, lr=0.003)
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=optimizer,
        config={"train_micro_batch_size_per_gpu": BATCH, "gradient_accumulation_steps": 4, "gradient_clipping": 1.0,
                "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": True, "steps_per_print": 10**9})
    rank = int(os.environ["RANK"])
    print(json.dumps({"rank": rank, "deepspeed": deepspeed.__version__, "torch": torch.__version__,
                      "groups": [len(group["params"]) for group in groups],
                      "kept_groups": len(engine.optimizer.bit16_groups)}), flush=True)
    data = batches()
    for step in range(options.steps):
        if options.stacks_after:
            faulthandler.dump_traceback_later(options.stacks_after, exit=False)
            signal.alarm(int(options.stacks_after) + 8)  # when all ranks have printed theirs, the end
        loss = engine.train_batch(data_iter=data)
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        print(json.dumps({"rank": rank, "step": step, "loss": float(loss), "grad_norm": float(engine.get_global_grad_norm())}),
              flush=True)


if __name__ == "__main__":
    main()
