"""A tied embedding around blocks, cut so that the last stage holds the embedding alone."""
import torch
from deepspeed.pipe import LayerSpec, PipelineModule, TiedLayerSpec


class Embed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(32, 16))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.mlp = torch.nn.Linear(16, 16)


def pass_on(tensors):
    return tensors


def build(method):
    layers = [TiedLayerSpec("t", Embed), *(LayerSpec(Block) for _ in range(4)), pass_on, TiedLayerSpec("t", Embed)]
    module = PipelineModule(layers, num_stages=2, partition_method=method)
    decayed = [p for n, p in module.named_parameters() if "norm" not in n and not n.endswith("bias")]
    others = [p for n, p in module.named_parameters() if "norm" in n or n.endswith("bias")]
    return module, [{"params": decayed}, {"params": others}], {"zero": {"stage": 1}, "datatype": "f16", "schedule": {"micro_batches": 3}}


def by_embed():
    return build("type:embed")


def by_block():
    return build("type:block")
