# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Optimizer wrapper and learning-rate schedule."""

import math
from contextlib import contextmanager

import torch
from mmengine.device import get_device
from mmengine.optim import OptimWrapper, _ParamScheduler
from mmengine.optim.scheduler.param_scheduler import INF
from torch import nn
from torch.optim import Optimizer

from mmclca.registry import OPTIM_WRAPPERS, PARAM_SCHEDULERS
from mmclca.utils.messages import check_integer, check_number


@OPTIM_WRAPPERS.register_module()
class BF16OptimWrapper(OptimWrapper):
    """Mixed precision in bfloat16 on a CPU or a GPU.

    mmengine's ``AmpOptimWrapper`` requires a GPU. bfloat16 has the same range
    as float32, so the loss is not scaled; parameters and updates stay in
    float32. On a CPU with bfloat16 instructions (AVX-512 BF16, AMX), a
    training step with a small ViT takes about half as long as in float32; on
    other CPUs it is slower.

    Args:
        *args: See ``OptimWrapper``.
        **kwargs: See ``OptimWrapper``.
    """

    @contextmanager
    def optim_context(self, model: nn.Module):
        """Autocast context for a forward pass; see ``OptimWrapper``."""
        device = torch.device(get_device()).type
        autocast = torch.autocast(device, torch.bfloat16)
        with super().optim_context(model), autocast:
            yield


@PARAM_SCHEDULERS.register_module()
class WarmupCosineLR(_ParamScheduler):
    """Linear warm-up, then a cosine from step 0, then a constant rate.

    timm's schedule: the cosine starts at the first step, and the warm-up
    replaces its beginning. With base learning rate b, the rate at step e is
    b (s + (1 - s) e / warmup) for e < warmup, then
    b (m + (1 - m) (1 + cos(pi e / T_max)) / 2) for e < T_max, then b m. The
    cosine in ``LinearLR`` followed by ``CosineAnnealingLR`` differs: it starts
    after the warm-up.

    Start and end rates are relative to the base learning rate of each
    parameter group, so layer-wise learning rates keep their ratios.

    Args:
        optimizer (Optimizer | BaseOptimWrapper): Wrapped optimizer.
        T_max (int): Last step of the cosine, including the warm-up.
        warmup (int): Warm-up steps. Defaults to 0.
        start_factor (float): Relative rate s at the first warm-up step.
            Defaults to 0.01.
        eta_min_ratio (float): Relative rate m at the end of the cosine and
            afterwards. Defaults to 0.
        **kwargs: ``begin``, ``end``, ``last_step``, ``by_epoch`` and
            ``verbose``, as in every mmengine scheduler.

    Raises:
        Error: If a relative rate is outside [0, 1], or the warm-up does
            not end before the cosine.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,
        warmup: int = 0,
        start_factor: float = 0.01,
        eta_min_ratio: float = 0.0,
        **kwargs,
    ):
        check_number(
            0, 1, start_factor=start_factor, eta_min_ratio=eta_min_ratio
        )
        check_integer(0, T_max - 1, warmup=warmup)  # the cosine includes it
        self.T_max = T_max
        self.warmup = warmup
        self.start_factor = start_factor
        self.eta_min_ratio = eta_min_ratio
        super().__init__(optimizer, 'lr', **kwargs)

    @classmethod
    def build_iter_from_epoch(cls, optimizer, *, epoch_length, **options):
        """Build an iteration-based scheduler from settings in epochs.

        mmengine calls this for ``convert_to_iter_based=True``.
        """
        for name in ('T_max', 'warmup', 'begin', 'end'):
            if options.get(name, INF) != INF:
                options[name] *= epoch_length
        return cls(optimizer, **dict(options, by_epoch=False))

    def factor(self, step: int) -> float:
        """Relative learning rate at a step, counted from 0."""
        if step < self.warmup:
            done = step / self.warmup
            return self.start_factor + (1 - self.start_factor) * done
        phase = math.pi * min(step / self.T_max, 1)
        cosine = (1 + math.cos(phase)) / 2
        return self.eta_min_ratio + (1 - self.eta_min_ratio) * cosine

    def _get_value(self) -> list[float]:
        factor = self.factor(self.last_step)
        return [base * factor for base in self.base_values]
