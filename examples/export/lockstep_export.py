#!/usr/bin/env python3
"""Writes what an installed training framework is going to do, for `lockstep gate`: no GPU, no other process, one file without dependencies.

  lockstep_export.py deepspeed-plan FILE.py:FUNCTION --pipe P [--data D]       plan of the PipelineModule that FUNCTION() returns
  lockstep_export.py deepspeed-schedule --stages P --micro-batches M           Job of TrainSchedule.steps(), or of another --class
  lockstep_export.py torch-schedule --name NAME --stages P --micro-batches M   Job of a schedule class of torch.distributed.pipelining
  lockstep_export.py megatron-schedule --stages P [--virtual V] --micro-batches M [--config JSON]   Job of Megatron-Core's pipeline schedule

Run it in the environment of the training. The schedules come from the framework that is installed there: a change to its code, or to yours,
is what `lockstep gate --base before.json --head after.json` then sees. In a script that has a module already, call plan_of(module) instead.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import sys
import types

DATATYPES = {"torch.float16": "f16", "torch.bfloat16": "bf16", "torch.float32": "f32", "torch.float64": "f64"}


class ExportError(Exception):
    """What was given cannot be exported; the text says why."""


# Plans of DeepSpeed


def parameters_of(module):
    """The parameters of a torch module as a plan has them: names within it, the class that owns each, shapes."""
    owners = dict(module.named_modules())
    entries = []
    for name, parameter in module.named_parameters():
        entry = {"name": name, "module": type(owners[name.rpartition(".")[0]]).__name__, "shape": list(parameter.shape)}
        if not parameter.requires_grad:
            entry["frozen"] = True
        entries.append(entry)
    return entries


def layer_of(spec):
    """A layer of a PipelineModule: a specification that is built here, a module, or a function."""
    typename = getattr(spec, "typename", None)
    if typename is not None:
        layer = {"class": typename.__name__}
        if hasattr(spec, "tied_weight_attr"):
            attributes = spec.tied_weight_attr
            layer["tied"] = str(spec.key)
            layer["tied_weights"] = [attributes] if isinstance(attributes, str) else list(attributes)
        parameters = parameters_of(spec.build())
    elif hasattr(spec, "named_parameters"):
        layer = {"class": type(spec).__name__}
        parameters = parameters_of(spec)
    else:
        # An object without __name__ has no class for a partition by type either.
        return {"class": spec.__name__} if hasattr(spec, "__name__") else {}
    if parameters:
        layer["parameters"] = parameters
    return layer


def datatype_of(module):
    kinds = {DATATYPES.get(str(parameter.dtype)) for parameter in module.parameters()} - {None}
    if len(kinds) > 1:
        raise ExportError(f"parameters of several types: {', '.join(sorted(kinds))}; a plan has one")
    return kinds.pop() if kinds else "f32"


def decays(rule, module_class, name, dimensions):
    is_bias = name == "bias" or name.endswith(".bias")
    if rule == "megatron":
        return not is_bias and "LayerNorm" not in module_class
    return not is_bias and dimensions != 1


def group_rule(module, param_groups):
    """The rule of parameter groups that makes these groups of an optimizer: those of this rank, empty ones with or without."""
    trained = {}
    for path, owner in module.named_modules():
        for name, parameter in owner.named_parameters(recurse=False):
            if parameter.requires_grad:
                trained.setdefault(id(parameter), (type(owner).__name__, name, len(parameter.shape)))
    given = sorted(sorted(id(parameter) for parameter in group["params"]) for group in param_groups if group["params"])
    if given == [sorted(trained)] and len(param_groups) == 1:
        fits = {"single"}
    else:
        fits = set()
    for rule in ("megatron", "one_dimensional"):
        sides = {True: [], False: []}
        for identity, about in trained.items():
            sides[decays(rule, *about)].append(identity)
        if given == sorted(sorted(side) for side in sides.values() if side):
            fits.add(rule)
    if not fits:
        raise ExportError(f"none of the known rules makes these {len(param_groups)} parameter groups: state optimizer.groups in the plan")
    return next(rule for rule in ("megatron", "one_dimensional", "single") if rule in fits), len(fits) > 1


def plan_of(module_or_engine, param_groups=None):
    """Plan of a deepspeed PipelineModule or PipelineEngine, as an object for json.dump; `param_groups` of the optimizer on this rank.

    The cut is the one that the framework made. What neither says (micro-batches, clipping, the way to step) is what a plan assumes.
    """
    import deepspeed

    engine = module_or_engine if hasattr(module_or_engine, "train_batch") else None
    module = engine.module if engine is not None else module_or_engine
    if not hasattr(module, "_layer_specs") or not hasattr(module, "parts"):
        raise ExportError(f"{type(module).__name__} is no PipelineModule of DeepSpeed")
    topology = module.topology()
    degree = lambda axis: topology.get_dim(axis) if axis in topology.get_axis_names() else 1
    plan = {
        "schema": "lockstep-plan/1",
        "framework": {"name": "deepspeed", "version": deepspeed.__version__.partition("+")[0]},
        "topology": {"pipe": degree("pipe"), "data": degree("data"), "tensor": degree("model")},
        "datatype": datatype_of(module),
        "layers": [layer_of(spec) for spec in module._layer_specs],
        "partition": {"parts": [int(part) for part in module.parts]},
    }
    optimizer = {}
    if engine is not None:
        plan["schedule"] = {"micro_batches": engine.micro_batches}
        if engine.zero_optimization_stage():
            plan["zero"] = {"stage": engine.zero_optimization_stage()}
        optimizer["clip_grad"] = engine.gradient_clipping()
    if param_groups is not None:
        optimizer["groups"], is_guess = group_rule(module, param_groups)
        if is_guess:
            print(f"warning: on this rank more than one rule makes these parameter groups; {optimizer['groups']} is taken", file=sys.stderr)
    if optimizer:
        plan["optimizer"] = optimizer
    return plan


def join_nothing(world):
    """torch.distributed with `world` ranks of which only this one exists: groups can be made, nothing is sent."""
    import torch.distributed
    from torch.testing._internal.distributed.fake_pg import FakeStore

    os.environ.update({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": str(world)})
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
    import deepspeed
    import deepspeed.comm.torch

    deepspeed.comm.torch.build_shm_op = lambda: None  # on a CPU it waits for the other ranks in shared memory
    deepspeed.init_distributed(dist_backend="fake", verbose=False)


def call_of(place):
    """FILE.py:FUNCTION -> the function."""
    path, _, name = place.rpartition(":")
    if not path:
        raise ExportError(f"'{place}' is not FILE.py:FUNCTION")
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    if spec is None or not pathlib.Path(path).is_file():
        raise ExportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise ExportError(f"{path} has no function {name}")
    return getattr(module, name)


def deepspeed_plan(arguments):
    join_nothing(arguments.pipe * arguments.data)
    made = call_of(arguments.place)()
    module, param_groups, stated = (*made, None, None)[:3] if isinstance(made, tuple) else (made, None, None)
    plan = plan_of(module, param_groups)
    for field, value in (stated or {}).items():
        plan[field] = {**plan[field], **value} if isinstance(value, dict) and field in plan else value
    return plan


# Schedules


def job_of(name, group, ranks, lines):
    return {"schema": "lockstep-job/1", "name": name, "library": "torch", "groups": {group: list(range(ranks))},
            "ranks": {str(rank): lines[rank] for rank in range(ranks)}, "ends": {str(rank): "exited 0" for rank in range(ranks)}}


def deepspeed_instructions(schedule_class, stages, micro_batches):
    """By stage: the steps, each a list of [instruction, buffer] or [instruction]."""
    import deepspeed.runtime.pipe.schedule as schedules

    if not hasattr(schedules, schedule_class):
        raise ExportError(f"this DeepSpeed has no {schedule_class}")
    make = getattr(schedules, schedule_class)
    table = []
    for stage in range(stages):
        steps = make(micro_batches=micro_batches, stages=stages, stage_id=stage).steps()
        table.append([[[type(command).__name__] + ([command.kwargs["buffer_id"]] if "buffer_id" in command.kwargs else []) for command in step]
                      for step in steps])
    return table


def deepspeed_schedule(arguments):
    """Messages block, as send() and recv() of deepspeed.runtime.pipe.p2p do. What one carries is what its buffer holds by then."""
    stages = arguments.stages
    lines = []
    for stage, steps in enumerate(deepspeed_instructions(arguments.schedule_class, stages, arguments.micro_batches)):
        rank_lines = []
        received, held = {}, {}  # buffer -> micro-batch: arrived for the next forward pass; of the last one
        arrivals = forwards = 0
        for instruction, *buffers in (command for step in steps for command in step):
            buffer = buffers[0] if buffers else None
            if instruction == "ForwardPass":
                held[buffer] = received.pop(buffer, forwards)
                forwards += 1
            elif instruction == "RecvActivation":
                received[buffer] = arrivals
                rank_lines.append(("recv", stage - 1, f"act:{stage - 1}.{arrivals}", instruction))
                arrivals += 1
            elif instruction == "SendActivation":
                rank_lines.append(("send", stage + 1, f"act:{stage}.{held.get(buffer, 'none')}", instruction))
            elif instruction == "SendGrad":
                rank_lines.append(("send", stage - 1, f"grad:{stage}.{held.get(buffer, 'none')}", instruction))
            elif instruction == "RecvGrad":
                rank_lines.append(("recv", stage + 1, f"grad:{stage + 1}.{held.get(buffer, 'none')}", instruction))
            elif instruction not in ("LoadMicroBatch", "BackwardPass", "ReduceTiedGrads", "ReduceGrads", "OptimizerStep"):
                raise ExportError(f"{arguments.schedule_class} has an instruction {instruction} whose messages are not known here")
        for _, peer, _, instruction in rank_lines:
            if not 0 <= peer < stages:
                raise ExportError(f"stage {stage} has {instruction} to stage {peer}, which there is none")
        lines.append([f"{word} {peer} pipe payload={payload} label={label}" for word, peer, payload, label in rank_lines])
    return job_of(f"{arguments.schedule_class} {stages} stages, {arguments.micro_batches} micro-batches", "pipe", stages, lines)


def torch_order(name, stages, virtual, micro_batches):
    """The installed class's actions by rank, messages included, and the rank of each stage."""
    import torch.distributed.pipelining.schedules as schedules

    make = schedules.get_schedule_class(name)
    total = stages * virtual
    v_shaped = any(word in make.__name__ for word in ("ZBV", "DualPipeV"))
    ranks_of_stage = [(stage if stage < stages else total - 1 - stage) if v_shaped else stage % stages for stage in range(total)]

    def stage_of(index):
        """As much of a pipeline stage as a schedule looks at before it runs."""
        return types.SimpleNamespace(
            stage_index=index, num_stages=total, group_size=stages, group_rank=0, group=None, device="cpu", has_backward=True, is_first=index == 0,
            is_last=index == total - 1, stage_index_to_group_rank=dict(enumerate(ranks_of_stage)), submod=None)

    own = [stage_of(index) for index in range(total) if ranks_of_stage[index] == 0]
    if not issubclass(make, schedules.PipelineScheduleMulti):
        raise ExportError(f"{make.__name__} runs without an order that could be exported; export a schedule for several stages of a rank")
    schedule = make(own, micro_batches, loss_fn=lambda *_: None)
    order = getattr(schedule, "pipeline_order_with_comms", None)
    if not order:
        raise ExportError(f"{make.__name__} of this torch makes its messages only as it runs")
    return {rank: [str(action) for action in order[rank] if action is not None] for rank in sorted(order)}, ranks_of_stage


def torch_lines(actions, ranks_of_stage):
    """A rank's actions as lines of a Job: a message is one batch, a receive is waited for before what needs it, a send at the end."""
    import re

    lines, sends, receives = [], [], {}
    number = 0
    for action in actions:
        for stage, letters, micro_batch in re.findall(r"(\d+)(SEND_F|RECV_F|SEND_B|RECV_B|F|BW|B|I|W)(\d+)", action.replace("OVERLAP_F_B", "")):
            stage, micro_batch = int(stage), int(micro_batch)
            if letters in ("F", "B", "I", "BW"):
                kind = "F" if letters == "F" else "B"
                if (stage, kind, micro_batch) in receives:
                    lines.append(f"wait handle={receives.pop((stage, kind, micro_batch))}")
                continue
            if letters == "W":
                continue
            number += 1
            forward = letters.endswith("F")
            sends_it = letters.startswith("SEND")
            peer_stage = stage + 1 if forward == sends_it else stage - 1
            origin = stage if sends_it else peer_stage
            payload = f"{'act' if forward else 'grad'}:{origin}.{micro_batch}"
            lines.append(f"batch[{'send' if sends_it else 'recv'} {ranks_of_stage[peer_stage]} pp payload={payload} handle=p2p{number} label={letters}]")
            if sends_it:
                sends.append(f"p2p{number}")
            else:
                receives[(stage, "F" if forward else "B", micro_batch)] = f"p2p{number}"
    return lines + [f"wait handle={handle}" for handle in sends]


def torch_schedule(arguments):
    order, ranks_of_stage = torch_order(arguments.name, arguments.stages, arguments.virtual, arguments.micro_batches)
    lines = [torch_lines(order[rank], ranks_of_stage) for rank in range(arguments.stages)]
    return job_of(f"{arguments.name} {arguments.stages} ranks, {arguments.micro_batches} micro-batches", "pp", arguments.stages, lines)


class MegatronRank:
    """Runs the installed schedule of one pipeline rank with nothing behind it: what it computes and sends is written down in `events`.

    An event is ("F" or "B", chunk, micro-batch), ("batch" or "single", [message]), ("wait", number of the batch or message), or ("sync",). A message
    is [word, peer, payload, group]; the payload of a receive is known when the tensor is used.
    """

    def __init__(self, rank, stages, virtual, micro_batches, config, forward_only):
        self.rank, self.stages, self.virtual, self.micro_batches = rank, stages, virtual, micro_batches
        self.settings, self.forward_only, self.events, self.issued = config, forward_only, [], 0

    def size(self):
        return self.stages

    def message(self, word, tensor, peer, group=None):
        entry = [word, peer, getattr(tensor, "carries", "shape"), "pp" if group is self else "world"]
        if word == "recv":
            tensor.entry = entry
        return entry

    def issue(self, kind, messages):
        self.issued += 1
        number = self.issued
        self.events.append((kind, number, messages))
        return types.SimpleNamespace(wait=lambda: self.events.append(("wait", number)))

    def carry(self, chunk, micro_batch, gradient):
        import torch

        tensor = torch.zeros(1, 1, 1, requires_grad=True)
        tensor.carries = f"{'grad' if gradient else 'act'}:{chunk * self.stages + self.rank}.{micro_batch}"
        tensor.of = (chunk, micro_batch)
        return tensor

    def receive(self, tensors, chunk, micro_batch, gradient):
        """A tensor that came from the stage before (or behind) is used."""
        for tensor in tensors if isinstance(tensors, list) else [tensors]:
            if tensor is not None and hasattr(tensor, "entry"):
                stage = chunk * self.stages + self.rank + (1 if gradient else -1)
                tensor.entry[2] = f"{'grad' if gradient else 'act'}:{stage}.{micro_batch}"

    def forward_step(self, _function, _data, _model, _count, input_tensor, *_arguments, current_microbatch=None, vp_stage=None, **_named):
        import torch

        chunk = vp_stage or 0
        self.receive(input_tensor, chunk, current_microbatch, False)
        self.events.append(("F", chunk, current_microbatch))
        output = self.carry(chunk, current_microbatch, False)
        return ([output] if isinstance(input_tensor, list) else output), torch.zeros([], dtype=torch.int)

    def backward_step(self, input_tensor, output_tensor, output_tensor_grad, *_arguments, **_named):
        output = output_tensor[0] if isinstance(output_tensor, list) else output_tensor
        chunk, micro_batch = output.of
        self.receive(output_tensor_grad, chunk, micro_batch, True)
        self.events.append(("B", chunk, micro_batch))
        gradient = self.carry(chunk, micro_batch, True)
        return [gradient] if isinstance(input_tensor, list) else gradient

    def run(self):
        import contextlib
        import unittest.mock

        import torch
        import torch.distributed as dist
        import megatron.core.pipeline_parallel.p2p_communication as p2p
        import megatron.core.pipeline_parallel.schedules as schedules
        from megatron.core.model_parallel_config import ModelParallelConfig
        from megatron.core.process_groups_config import ProcessGroupCollection

        class Settings(ModelParallelConfig):
            """Fields that only larger configurations have are off."""

            def __getattr__(self, name):
                if name.startswith("__"):
                    raise AttributeError(name)
                return None

        config = Settings(pipeline_model_parallel_size=self.stages, pipeline_dtype=torch.float32, deallocate_pipeline_outputs=False,
                                     virtual_pipeline_model_parallel_size=self.virtual if self.virtual > 1 else None, **self.settings)
        config.hidden_size = 1
        config.finalize_model_grads_func = None
        if self.virtual > 1 and not config.microbatch_group_size_per_vp_stage:
            config.microbatch_group_size_per_vp_stage = self.stages
        one = types.SimpleNamespace(size=lambda: 1, rank=lambda: 0)
        group = self
        alone = types.SimpleNamespace(size=self.size, rank=lambda: self.rank)
        groups = ProcessGroupCollection()
        for name in ("tp", "cp", "embd", "pos_embd", "dp_cp"):
            setattr(groups, name, one)
        groups.pp = alone
        model = []
        for _ in range(self.virtual):
            chunk = torch.nn.Module()
            chunk.config, chunk.model_type = config, None
            chunk.set_input_tensor = lambda _tensor: None
            model.append(chunk)

        def on_cpu(make):
            return lambda *arguments, **named: make(*arguments, **{key: value for key, value in named.items() if key != "device"})

        def of(op, tensor, peer, where):
            return group.message("send" if "send" in op.__name__ else "recv", tensor, peer, group if where is alone else None)

        single = {word: (lambda tensor, word=word, **named: group.issue("single", [group.message(
            word[1:], tensor, named.get("dst", named.get("src")), group if named.get("group") is alone else None)])) for word in ("isend", "irecv")}
        for word, function in single.items():
            function.__name__ = word
        patches = [
            unittest.mock.patch.object(schedules, "forward_step", self.forward_step), unittest.mock.patch.object(schedules, "backward_step", self.backward_step),
            unittest.mock.patch.object(dist, "is_initialized", lambda: True), unittest.mock.patch.object(dist, "get_global_rank", lambda _group, rank: rank),
            unittest.mock.patch.object(dist, "get_backend", lambda *_: "nccl"), unittest.mock.patch.object(dist, "P2POp", of),
            unittest.mock.patch.object(dist, "isend", single["isend"]), unittest.mock.patch.object(dist, "irecv", single["irecv"]),
            unittest.mock.patch.object(dist, "batch_isend_irecv", lambda ops: [self.issue("batch", ops)]),
            unittest.mock.patch.object(torch.cuda, "synchronize", lambda *_: self.events.append(("sync",))),
            unittest.mock.patch.object(torch.cuda, "current_device", lambda: "cpu"),
        ] + [unittest.mock.patch.object(torch, name, on_cpu(make))  # a shape that is received is (1, 1, 1)
             for name, make in (("zeros", torch.zeros), ("empty", torch.ones), ("tensor", torch.tensor))]
        with contextlib.ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch)
            schedules.get_forward_backward_func(self.stages, config.virtual_pipeline_model_parallel_size)(
                forward_step_func=None, data_iterator=[None] * self.virtual, model=model if self.virtual > 1 else model[0], num_microbatches=self.micro_batches,
                seq_length=1, micro_batch_size=1, forward_only=self.forward_only, p2p_communicator=p2p.P2PCommunicator(alone, config), pg_collection=groups)
        return self.events


def megatron_events(stages, virtual, micro_batches, config=None, forward_only=False):
    """By rank, what the installed schedule does."""
    try:
        return [MegatronRank(rank, stages, virtual, micro_batches, config or {}, forward_only).run() for rank in range(stages)]
    except (ValueError, RuntimeError) as error:
        raise ExportError(f"Megatron-Core refuses this: {error}") from error


def megatron_schedule(arguments):
    config = json.loads(arguments.config)
    lines = []
    for events in megatron_events(arguments.stages, arguments.virtual, arguments.micro_batches, config):
        rank_lines, parts = [], {}
        for event in events:
            if event[0] == "batch":
                parts[event[1]] = len(event[2])
                messages = "; ".join(f"{word} {peer} {group} payload={payload} handle=p2p{event[1]}_{number}"
                                     for number, (word, peer, payload, group) in enumerate(event[2]))
                rank_lines.append(f"batch[{messages}]")
            elif event[0] == "single":
                word, peer, payload, group = event[2][0]
                parts[event[1]] = 1
                rank_lines.append(f"i{word} {peer} {group} payload={payload} handle=p2p{event[1]}_0")
            elif event[0] == "wait":
                rank_lines += [f"wait handle=p2p{event[1]}_{number}" for number in range(parts.pop(event[1], 0))]
        lines.append(rank_lines)
    job = job_of(f"Megatron-Core {arguments.stages} stages, {arguments.virtual} chunks, {arguments.micro_batches} micro-batches", "pp", arguments.stages, lines)
    job["groups"]["world"] = job["groups"]["pp"]
    return job


def positive(text):
    number = int(text)
    if not 1 <= number <= 65536:
        raise argparse.ArgumentTypeError("must be from 1 to 65536")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    plan = commands.add_parser("deepspeed-plan", help="FUNCTION() returns a PipelineModule, or (PipelineModule, param_groups or None[, further fields of the plan])")
    plan.add_argument("place", metavar="FILE.py:FUNCTION")
    plan.add_argument("--pipe", type=positive, required=True)
    plan.add_argument("--data", type=positive, default=1)
    plan.set_defaults(make=deepspeed_plan)
    for name, make in (("deepspeed-schedule", deepspeed_schedule), ("torch-schedule", torch_schedule), ("megatron-schedule", megatron_schedule)):
        schedule = commands.add_parser(name)
        schedule.add_argument("--stages", type=positive, required=True)
        schedule.add_argument("--micro-batches", type=positive, required=True)
        schedule.set_defaults(make=make)
        if make is torch_schedule:
            schedule.add_argument("--name", required=True)
            schedule.add_argument("--virtual", type=positive, default=1, help="stages of a rank")
        elif make is megatron_schedule:
            schedule.add_argument("--virtual", type=positive, default=1, help="model chunks of a rank")
            schedule.add_argument("--config", default="{}", help='fields of ModelParallelConfig, as {"batch_p2p_comm": false}')
        else:
            schedule.add_argument("--class", dest="schedule_class", default="TrainSchedule")
    arguments = parser.parse_args()
    # Frameworks print as they load: standard output is for the result alone.
    result_file = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        result = arguments.make(arguments)
    except ExportError as error:
        print(f"lockstep_export: {error}", file=sys.stderr)
        return 3
    except ImportError as error:
        print(f"lockstep_export: {error}: run this in the environment of the training", file=sys.stderr)
        return 3
    with result_file:
        json.dump(result, result_file, indent=1)
        result_file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
