"""Makes the gradient norm of an installed DeepSpeed one reduction over the model-parallel group, whatever a stage owns.

As shipped, each rank reduces once for each of its own optimizer groups. Pipeline stages own different numbers of groups, for empty
ones are dropped, so a stage may wait for a reduction that another never makes. Here the norms of groups stay local, and their sum
is reduced once. Before deepspeed.initialize, on every rank: lockstep_deepspeed_fix.apply()

Changes DeepSpeedZeroOptimizer (stage_1_and_2.py; FP16_DeepSpeedZeroOptimizer of stage2.py), plain and with CPU offload, and
FP16_UnfusedOptimizer. Where the code does not look as expected, UnknownDeepSpeed says what was missed and nothing is changed.
"""
import contextlib
import functools
import importlib
import inspect
import math

ZERO_MODULES = ("deepspeed.runtime.zero.stage_1_and_2", "deepspeed.runtime.zero.stage2")
UNFUSED_MODULE = "deepspeed.runtime.fp16.unfused_optimizer"
PER_GROUP = ("get_grad_norm_direct", "complete_grad_norm_calculation_for_cpu_offload")
_applied = []


class UnknownDeepSpeed(RuntimeError):
    """The installed code is not what this module can mend."""


def apply():
    """Mends what is installed and returns a line for each class. A second call changes nothing."""
    if not _applied:
        zero = [module for module in map(_import, ZERO_MODULES) if module is not None]
        if not zero:
            raise UnknownDeepSpeed(f"neither of {', '.join(ZERO_MODULES)} can be imported")
        known = [(mend_zero, module, zero_class(module)) for module in zero]  # all are looked at before one is changed
        known += [(mend_unfused, module, unfused_class(module)) for module in [_import(UNFUSED_MODULE)] if module is not None]
        _applied.extend(mend(module, cls) for mend, module, cls in known)
    return list(_applied)


def zero_class(module):
    cls = getattr(module, "DeepSpeedZeroOptimizer", None) or getattr(module, "FP16_DeepSpeedZeroOptimizer", None)
    for name in PER_GROUP:
        _demand(module, cls, name, "self._model_parallel_all_reduce(", "dp_process_group")
    has_own = hasattr(cls, "scaled_global_norm")
    looping = ("scaled_global_norm", "norm_groups") if has_own else ("step", "get_global_norm(norm_list=norm_groups)")
    _demand(module, cls, *looping, "for i, group in enumerate(", *(f"self.{name}(" for name in PER_GROUP))
    return cls


def unfused_class(module):
    cls = getattr(module, "FP16_UnfusedOptimizer", None)
    _demand(module, cls, "step", "get_weight_norm(", "get_global_norm(norm_list=norm_groups)")
    return cls


def mend_zero(module, cls):
    """Per-group norms without their reduction over the model-parallel group, and one reduction of their sum."""
    reduce = cls._model_parallel_all_reduce

    def local(per_group):
        @functools.wraps(per_group)
        def norm_of_group(self, *args, **kwargs):
            if getattr(self, "has_moe_layers", False):
                raise UnknownDeepSpeed("lockstep_deepspeed_fix: norms of expert groups are not supported")
            self._norm_is_local = True
            norm = per_group(self, *args, **kwargs)
            self._norm_is_local = False
            if not 0 <= float(norm) < math.inf:  # DeepSpeed writes -1 for infinity and NaN; its square would pass for a norm
                self._norm_is_invalid = True
            return norm
        return norm_of_group

    def global_norm(self, norm):
        squared = math.inf if self.__dict__.pop("_norm_is_invalid", False) else float(norm)**2
        return _reduced_norm(module, self, squared, functools.partial(reduce, self))

    for name in PER_GROUP:
        setattr(cls, name, local(getattr(cls, name)))
    cls._model_parallel_all_reduce = lambda self, *a, **k: None if vars(self).get("_norm_is_local") else reduce(self, *a, **k)
    if hasattr(cls, "scaled_global_norm"):
        shipped = cls.scaled_global_norm
        cls.scaled_global_norm = functools.wraps(shipped)(lambda self, *a, **k: global_norm(self, shipped(self, *a, **k)))
    else:
        combine = module.get_global_norm
        _reduce_in_step(module, cls, lambda self, norms: float(global_norm(self, combine(norm_list=norms))))
    return f"{cls.__name__}: the gradient norm is reduced once"


def mend_unfused(module, cls):
    """The norm from the parameters themselves, so that a tied weight, whose gradient carries no mark, counts once."""
    def local_norm(tensors, norm_type=2, mpu=None):
        norm = math.sqrt(sum(map(_squared, tensors if isinstance(tensors, (list, tuple)) else [tensors])))
        return norm if norm < math.inf else -1

    def global_norm(self, _):
        own = [p for group in self.fp16_groups for p in group if not (p.grad is None or getattr(p, "ds_pipe_replicated", False))]
        if _tensor_rank(self.mpu) > 0:  # what all tensor ranks hold alike is counted on the first
            own = [p for p in own if getattr(p, "model_parallel", getattr(p, "tensor_model_parallel", False))]
        squared = sum(_squared(p.grad) for p in own)

        group = self.mpu.get_model_parallel_group() if self.mpu is not None else None
        return float(_reduced_norm(module, self, squared, lambda tensor, op: group and _dist(module).all_reduce(tensor, op, group)))

    module.get_weight_norm = local_norm
    _reduce_in_step(module, cls, global_norm)
    return f"{cls.__name__}: the gradient norm is reduced once"


def _reduce_in_step(module, cls, global_norm):
    """step() hands its norms to get_global_norm of its module: there the one reduction belongs."""
    step = cls.step

    @functools.wraps(step)
    def step_with_norm(self, *args, **kwargs):
        module.get_global_norm = lambda norm_list: global_norm(self, norm_list)
        return step(self, *args, **kwargs)

    cls.step = step_with_norm


def _reduced_norm(module, optimizer, squared, reduce):
    group = getattr(optimizer, "bit16_groups", None) or optimizer.fp16_groups
    total = module.torch.tensor(squared if squared < math.inf else math.inf, dtype=module.torch.float32, device=group[0][0].device)
    reduce(tensor=total, op=_dist(module).ReduceOp.SUM)
    return total**0.5


def _demand(module, cls, name, *parts):
    source = inspect.getsource(getattr(cls, name)) if hasattr(cls, name) else ""
    for part in parts:
        if part not in source:
            where = f"{module.__name__}.{getattr(cls, '__name__', 'the optimizer class')}.{name}"
            raise UnknownDeepSpeed(f"{where} is not as expected (no '{part}'); nothing was changed")


def _import(name):
    with contextlib.suppress(ModuleNotFoundError):
        return importlib.import_module(name)


def _dist(module):
    return getattr(module, "dist", None) or module.torch.distributed


def _squared(tensor):
    return float(tensor.data.float().norm(2))**2


def _tensor_rank(mpu):
    names = ("get_tensor_model_parallel_rank", "get_slice_parallel_rank", "get_model_parallel_rank")
    return next((getattr(mpu, name)() for name in names if hasattr(mpu, name)), 0)  # of Megatron, of DeepSpeed, of older ones
