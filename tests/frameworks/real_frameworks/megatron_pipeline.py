"""Steps of Megatron-Core on the CPU: two pipeline stages, two data-parallel replicas, tied embeddings, 1F1B, gradient clipping. Prints losses.

Megatron asks for CUDA by name in its schedules ("cuda", torch.cuda.current_device()). Nothing of it is changed: torch is told here that these
mean the CPU. What it does by calls of torch.distributed is as published.
"""
import functools
import os

import torch
import torch.distributed as dist
from torch.overrides import TorchFunctionMode

torch.cuda.current_device = lambda: torch.device("cpu")
torch.cuda.synchronize = lambda *_: None


class OnTheCpu(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = "cpu"
        return function(*args, **kwargs)


OnTheCpu().__enter__()

from megatron.core import parallel_state  # noqa: E402
from megatron.core.enums import ModelType  # noqa: E402
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec  # noqa: E402
from megatron.core.optimizer.clip_grads import get_grad_norm_fp32  # noqa: E402
from megatron.core.pipeline_parallel.schedules import forward_backward_pipelining_without_interleaving  # noqa: E402
from megatron.core.tensor_parallel.layers import VocabParallelEmbedding  # noqa: E402
from megatron.core.transformer.mlp import MLP  # noqa: E402
from megatron.core.transformer.module import MegatronModule  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402

SEQUENCE, BATCH, HIDDEN, WORDS, MICRO_BATCHES = 6, 2, 16, 24, 4


class Stage(MegatronModule):
    """A residual MLP of Megatron's layers; the first and the last stage share their word embeddings."""

    def __init__(self, config):
        super().__init__(config)
        self.model_type = ModelType.encoder_or_decoder
        self.pre_process = parallel_state.is_pipeline_first_stage()
        self.post_process = parallel_state.is_pipeline_last_stage()
        self.share_embeddings_and_output_weights = True
        self.embedding = VocabParallelEmbedding(WORDS, HIDDEN, init_method=config.init_method, config=config)
        if not self.pre_process:
            with torch.no_grad():
                self.embedding.weight.fill_(0)
        self.embedding.weight.shared_embedding = True
        dist.all_reduce(self.embedding.weight.data, group=parallel_state.get_embedding_group())
        self.mlp = MLP(config, get_gpt_layer_local_spec().submodules.mlp.submodules)
        self.input = None

    def set_input_tensor(self, tensors):
        self.input = tensors[0] if isinstance(tensors, list) else tensors

    def shared_embedding_or_output_weight(self):
        return self.embedding.weight

    def forward(self, words):
        hidden = self.embedding(words).transpose(0, 1).contiguous() if self.pre_process else self.input
        hidden = hidden + self.mlp(hidden)[0]
        return hidden @ self.embedding.weight.t() if self.post_process else hidden


def say(*values):
    os.write(1, (" ".join(map(str, values)) + "\n").encode())  # in one piece: other ranks write there, too


def micro_batches(step, replica):
    generator = torch.Generator().manual_seed(100 * step + replica)
    while True:
        yield torch.randint(0, WORDS, (BATCH, SEQUENCE), generator=generator)


def forward_step(iterator, model):
    words = next(iterator)

    def loss_of(words, output):
        loss = torch.nn.functional.cross_entropy(output.transpose(0, 1).reshape(-1, WORDS), words.reshape(-1))
        return loss, {"loss": loss.detach().clone()}
    return model(words), functools.partial(loss_of, words)


def main():
    dist.init_process_group("gloo")
    parallel_state.initialize_model_parallel(pipeline_model_parallel_size=2)
    torch.manual_seed(7)
    config = TransformerConfig(num_layers=2, hidden_size=HIDDEN, num_attention_heads=2, use_cpu_initialization=True, pipeline_model_parallel_size=2, pipeline_dtype=torch.float32,
                               batch_p2p_comm=bool(int(os.environ.get("BATCHED", "0"))), gradient_accumulation_fusion=False, bias_activation_fusion=False)
    model = DistributedDataParallel(config, DistributedDataParallelConfig(overlap_grad_reduce=False), Stage(config))
    config.finalize_model_grads_func = finalize_model_grads
    config.no_sync_func = model.no_sync
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for step in range(3):
        model.zero_grad_buffer()
        losses = forward_backward_pipelining_without_interleaving(
            forward_step_func=forward_step, data_iterator=micro_batches(step, parallel_state.get_data_parallel_rank()), model=model,
            num_microbatches=MICRO_BATCHES, seq_length=SEQUENCE, micro_batch_size=BATCH)
        norm = get_grad_norm_fp32([p.main_grad for p in model.parameters()], grad_stats_parallel_group=parallel_state.get_model_parallel_group())
        for parameter in model.parameters():
            parameter.grad = parameter.main_grad / max(1.0, norm)
        optimizer.step()
        say("step", step, "losses", [round(float(part["loss"]), 7) for part in losses], "norm", round(float(norm), 6))
    say("weights", repr(sum(float(p.detach().double().abs().sum()) for p in model.parameters())))
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()


main()
