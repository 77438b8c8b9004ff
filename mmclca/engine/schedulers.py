# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

from mmengine.optim import _ParamScheduler
from mmengine.optim.scheduler.param_scheduler import INF

from mmclca.registry import PARAM_SCHEDULERS
from mmclca.utils.messages import integer, number


@PARAM_SCHEDULERS.register_module()
class WarmupCosineLR(_ParamScheduler):
    """Linear warm-up, then a cosine that began with the training, then flat.

    The schedule of timm, in which the cosine runs from the first step on and
    the warm-up takes the place of its start: with base learning rate b,
    e < warmup gives b (s + (1 - s) e / warmup), e < T_max gives
    b (m + (1 - m) (1 + cos(pi e / T_max)) / 2), and later steps b m. A
    ``LinearLR`` followed by a ``CosineAnnealingLR`` is another curve: its
    cosine begins where the warm-up ends.

    Start and end are shares of the base learning rate of each parameter
    group, so layer-wise learning rates keep their ratios.

    Args:
        optimizer (Optimizer | BaseOptimWrapper): Wrapped optimizer.
        T_max (int): Step at which the cosine ends, warm-up included.
        warmup (int): Steps of the warm-up. Defaults to 0.
        start_factor (float): Share s at the first step of the warm-up.
            Defaults to 0.01.
        eta_min_ratio (float): Share m at the end of the cosine and after it.
            Defaults to 0.
        **kwargs: ``begin``, ``end``, ``last_step``, ``by_epoch`` and
            ``verbose``, as in every scheduler of mmengine.

    Raises:
        ValueError: If a share is outside [0, 1], or the warm-up does not end
            before the cosine.
    """

    def __init__(
        self,
        optimizer,
        T_max: int,
        warmup: int = 0,
        start_factor: float = 0.01,
        eta_min_ratio: float = 0.0,
        **kwargs,
    ):
        number(0, 1, start_factor=start_factor, eta_min_ratio=eta_min_ratio)
        integer(0, T_max - 1, warmup=warmup)  # the cosine includes it
        self.T_max = T_max
        self.warmup = warmup
        self.start_factor = start_factor
        self.eta_min_ratio = eta_min_ratio
        super().__init__(optimizer, 'lr', **kwargs)

    @classmethod
    def build_iter_from_epoch(cls, optimizer, *, epoch_length, **options):
        """Build it with steps in iterations from a config in epochs.

        mmengine calls it for ``convert_to_iter_based=True``.
        """
        for name in ('T_max', 'warmup', 'begin', 'end'):
            if options.get(name, INF) != INF:
                options[name] *= epoch_length
        return cls(optimizer, **dict(options, by_epoch=False))

    def factor(self, step: int) -> float:
        """Return the share of the base learning rate at a step, counted from
        0."""
        if step < self.warmup:
            done = step / self.warmup
            return self.start_factor + (1 - self.start_factor) * done
        phase = math.pi * min(step / self.T_max, 1)
        cosine = (1 + math.cos(phase)) / 2
        return self.eta_min_ratio + (1 - self.eta_min_ratio) * cosine

    def _get_value(self) -> list[float]:
        factor = self.factor(self.last_step)
        return [base * factor for base in self.base_values]
