#!/usr/bin/env python3
"""examples/deepspeed_fix on fakes of the classes that it mends: how often they reduce, what norm comes out, what it refuses."""
import importlib.util
import math
import pathlib
import sys
import types
import unittest

FIX = pathlib.Path(__file__).parent.parent / "examples/deepspeed_fix/lockstep_deepspeed_fix.py"


class Tensor(float):
    device = "cpu"
    data = property(lambda self: self)

    def float(self):
        return self

    def norm(self, _):
        return abs(self)

    def __pow__(self, power):
        return Tensor(float.__pow__(self, power))


class Value:
    """What fake torch.tensor gives: changed in place by a reduction."""

    def __init__(self, value):
        self.value = value

    def __pow__(self, power):
        return self.value**power


class World:
    """Reductions over the model-parallel group as one rank sees them: each adds what the other stage brings."""

    def __init__(self, others=0.0):
        self.others, self.calls = others, 0
        self.ReduceOp = types.SimpleNamespace(SUM="sum", MAX="max")

    def all_reduce(self, tensor, op="sum", group=None):
        assert group == "model"
        self.calls += 1
        tensor.value += self.others


class Parameter:
    device = "cpu"

    def __init__(self, grad, replicated=False):
        self.grad = None if grad is None else Tensor(grad)
        self.ds_pipe_replicated = replicated


class Base:
    """What the shipped optimizers share. A group's norm is that of its numbers."""
    has_moe_layers = False
    dp_process_group = "data"
    cpu_offload = False

    def __init__(self, world, groups):
        self.world, self.bit16_groups, self.fp16_groups = world, groups, groups

    def _model_parallel_all_reduce(self, tensor, op):
        self.world.all_reduce(tensor, op, "model")

    def get_grad_norm_direct(self, group):
        assert self.dp_process_group == "data"
        total = Value(sum(p.grad**2 for p in group))
        self._model_parallel_all_reduce(tensor=total, op="sum")
        return -1.0 if not math.isfinite(total.value) else total.value**0.5

    def complete_grad_norm_calculation_for_cpu_offload(self, group):
        assert self.dp_process_group == "data"
        total = Value(sum(p.grad**2 for p in group))
        self._model_parallel_all_reduce(tensor=total, op="sum")
        return -1.0 if not math.isfinite(total.value) else total.value**0.5


def make_module(name, world, **members):
    module = types.ModuleType(name)
    module.torch = types.SimpleNamespace(tensor=lambda value, dtype, device: Value(value), float32="f32")
    module.dist = world
    for key, value in members.items():
        setattr(module, key, value)
    return module


def later(world):  # stage_1_and_2.py since 0.7
    class DeepSpeedZeroOptimizer(Base):
        def scaled_global_norm(self, norm_type=2):
            norm_groups = []
            for i, group in enumerate(self.bit16_groups):
                if self.cpu_offload:
                    norm_groups.append(self.complete_grad_norm_calculation_for_cpu_offload(group))
                else:
                    norm_groups.append(self.get_grad_norm_direct(group))
            return math.sqrt(sum(norm**2 for norm in norm_groups))

        def step(self):
            self._global_grad_norm = self.scaled_global_norm()
    return make_module("stage_1_and_2", world, DeepSpeedZeroOptimizer=DeepSpeedZeroOptimizer)


def earlier(world):  # stage2.py, and stage_1_and_2.py at first
    module = make_module("stage2", world, get_global_norm=lambda norm_list: math.sqrt(sum(norm**2 for norm in norm_list)))

    class FP16_DeepSpeedZeroOptimizer(Base):
        def step(self):
            norm_groups = []
            for i, group in enumerate(self.fp16_groups):
                if self.cpu_offload:
                    norm_groups.append(self.complete_grad_norm_calculation_for_cpu_offload(group))
                else:
                    norm_groups.append(self.get_grad_norm_direct(group))
            get_global_norm = module.get_global_norm
            self._global_grad_norm = get_global_norm(norm_list=norm_groups)
    module.FP16_DeepSpeedZeroOptimizer = FP16_DeepSpeedZeroOptimizer
    return module


def unfused(world):
    def shipped_weight_norm(tensors, mpu):
        total = Value(sum(tensor**2 for tensor in tensors))
        world.all_reduce(total, "sum", mpu.get_model_parallel_group())
        return total.value**0.5
    module = make_module("unfused", world, get_weight_norm=shipped_weight_norm,
                         get_global_norm=lambda norm_list: math.sqrt(sum(norm**2 for norm in norm_list)))

    class FP16_UnfusedOptimizer(Base):
        mpu = types.SimpleNamespace(get_model_parallel_group=lambda: "model", get_slice_parallel_rank=lambda: 0)

        def step(self):
            get_weight_norm, get_global_norm = module.get_weight_norm, module.get_global_norm
            norm_groups = []
            for group in self.fp16_groups:
                norm_groups.append(get_weight_norm([p.grad for p in group if p.grad is not None], mpu=self.mpu))
            self._global_grad_norm = get_global_norm(norm_list=norm_groups)
    module.FP16_UnfusedOptimizer = FP16_UnfusedOptimizer
    return module


def load():
    spec = importlib.util.spec_from_file_location("lockstep_deepspeed_fix", FIX)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ONE_GROUP, TWO_GROUPS = [[Parameter(3.0)]], [[Parameter(3.0)], [Parameter(4.0)]]


class DeepSpeedFix(unittest.TestCase):
    def setUp(self):
        self.fix = load()

    def mended(self, make, world):
        module = make(world)
        if make is unfused:
            cls = self.fix.unfused_class(module)
            self.fix.mend_unfused(module, cls)
        else:
            cls = self.fix.zero_class(module)
            self.fix.mend_zero(module, cls)
        return cls

    def test_shipped_code_reduces_once_for_each_group(self):
        for make, name in ((later, "DeepSpeedZeroOptimizer"), (earlier, "FP16_DeepSpeedZeroOptimizer"),
                           (unfused, "FP16_UnfusedOptimizer")):
            for groups in (ONE_GROUP, TWO_GROUPS):
                world = World()
                getattr(make(world), name)(world, groups).step()
                self.assertEqual(world.calls, len(groups))

    def test_mended_code_reduces_once_and_adds_the_other_stage_once(self):
        for make in (later, earlier, unfused):
            for groups, own in ((ONE_GROUP, 9.0), (TWO_GROUPS, 25.0)):
                for offload in (False, True):
                    world = World(others=11.0)
                    optimizer = self.mended(make, world)(world, groups)
                    optimizer.cpu_offload = offload
                    for _ in range(2):
                        world.calls = 0
                        optimizer.step()
                        self.assertEqual(world.calls, 1, make)
                        self.assertAlmostEqual(float(optimizer._global_grad_norm), math.sqrt(own + 11.0))

    def test_two_optimizers_of_one_class_keep_their_own_norms(self):
        for make in (earlier, unfused):
            world = World()
            cls = self.mended(make, world)
            first, second = cls(world, ONE_GROUP), cls(world, TWO_GROUPS)
            for optimizer in (first, second, first):
                optimizer.step()
            self.assertEqual((float(first._global_grad_norm), float(second._global_grad_norm)), (3.0, 5.0))

    def test_other_reductions_over_the_model_group_stay(self):
        world = World(others=1.0)
        optimizer = self.mended(later, world)(world, ONE_GROUP)
        overflow = Value(0.0)
        optimizer._model_parallel_all_reduce(tensor=overflow, op="max")
        self.assertEqual((world.calls, overflow.value), (1, 1.0))

    def test_an_invalid_norm_is_invalid_for_all(self):
        for make in (later, earlier, unfused):
            for bad in (math.inf, math.nan):
                world = World(others=11.0)
                optimizer = self.mended(make, world)(world, [[Parameter(3.0)], [Parameter(bad)]])
                optimizer.step()
                self.assertEqual(world.calls, 1)
                self.assertEqual(float(optimizer._global_grad_norm), math.inf)
                optimizer.bit16_groups = optimizer.fp16_groups = ONE_GROUP  # and gone with the gradient that caused it
                optimizer.step()
                self.assertAlmostEqual(float(optimizer._global_grad_norm), math.sqrt(20.0))

    def test_a_tied_copy_counts_on_its_first_stage_only(self):
        world = World(others=7.0)
        optimizer = self.mended(unfused, world)(world, [[Parameter(3.0), Parameter(100.0, replicated=True), Parameter(None)]])
        optimizer.step()
        self.assertAlmostEqual(float(optimizer._global_grad_norm), 4.0)

    def test_expert_groups_are_refused(self):
        world = World()
        optimizer = self.mended(later, world)(world, ONE_GROUP)
        optimizer.has_moe_layers = True
        with self.assertRaisesRegex(self.fix.UnknownDeepSpeed, "expert"):
            optimizer.step()

    def test_unknown_code_is_refused_and_left_alone(self):
        class DeepSpeedZeroOptimizer(Base):  # as a version might be that was mended upstream
            def scaled_global_norm(self):
                return self.one_reduction_over_all_groups()
        module = make_module("stage_1_and_2", World(), DeepSpeedZeroOptimizer=DeepSpeedZeroOptimizer)
        before = dict(vars(DeepSpeedZeroOptimizer))
        with self.assertRaisesRegex(self.fix.UnknownDeepSpeed, "scaled_global_norm is not as expected.*nothing was changed"):
            self.fix.zero_class(module)
        self.assertEqual(before, dict(vars(DeepSpeedZeroOptimizer)))
        with self.assertRaisesRegex(self.fix.UnknownDeepSpeed, "nothing was changed"):
            self.fix.zero_class(make_module("empty", World()))
        with self.assertRaisesRegex(self.fix.UnknownDeepSpeed, "nothing was changed"):
            self.fix.unfused_class(make_module("empty", World()))

    def test_apply_mends_what_is_installed_once_or_nothing(self):
        world = World()
        zero, second = later(world), unfused(world)
        sys.modules.update({"deepspeed": types.ModuleType("deepspeed"), "deepspeed.runtime": types.ModuleType("runtime"),
                            "deepspeed.runtime.zero": types.ModuleType("zero"), "deepspeed.runtime.fp16": types.ModuleType("fp16"),
                            "deepspeed.runtime.zero.stage_1_and_2": zero, self.fix.UNFUSED_MODULE: second})
        try:
            step = second.FP16_UnfusedOptimizer.step
            del second.FP16_UnfusedOptimizer
            before = dict(vars(zero.DeepSpeedZeroOptimizer))
            with self.assertRaises(self.fix.UnknownDeepSpeed):
                self.fix.apply()
            self.assertEqual(before, dict(vars(zero.DeepSpeedZeroOptimizer)))
            second.FP16_UnfusedOptimizer = type("FP16_UnfusedOptimizer", (Base,), {"step": step})
            lines = self.fix.apply()
            self.assertEqual(len(lines), 2)
            mended = dict(vars(zero.DeepSpeedZeroOptimizer))
            self.assertEqual(self.fix.apply(), lines)
            self.assertEqual(mended, dict(vars(zero.DeepSpeedZeroOptimizer)))
        finally:
            for name in [name for name in sys.modules if name.split(".")[0] == "deepspeed"]:
                del sys.modules[name]

    def test_is_short(self):
        self.assertLess(len(FIX.read_text().splitlines()), 150)


if __name__ == "__main__":
    unittest.main()
