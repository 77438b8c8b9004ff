# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor

from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model

from .epoch_maxima_hook import EpochMaximaHook


@HOOKS.register_module()
class GradientStatsHook(EpochMaximaHook):
    """Logs how large gradients are, in every iteration that updates.

    `Cross-Layer Cache Aggregation for Token Reduction in Ultra-Fine-Grained
    Image Recognition`, Fig. 4: the largest magnitude among all gradients.
    They are read just before the optimizer's step: summed over accumulated
    iterations and processes, without the scale of mixed precision, after
    clipping where there is any. mmengine logs the values with the loss and
    hands them to its visualizers. A step that mixed precision skips, for a
    gradient overflowed, has none. The values:

    - ``grad_max``: the largest magnitude of all;
    - ``grad_max_PART``: that of a part of the model;
    - ``grad_max_mean``, ``grad_max_std``: mean and standard deviation over
      parameters of each parameter's largest magnitude;
    - ``grad_norm_all``: the Euclidean norm of all gradients.

    Args:
        parts (tuple[str]): Names with which parameters begin, for a maximum
            of their own. Defaults to ``('backbone', 'head')``.

    Raises:
        ValueError: At the start of training, if a part has no parameters
            that are trained.
    """

    def __init__(self, parts: tuple[str, ...] = ('backbone', 'head')):
        super().__init__(['grad_max', *(f'grad_max_{part}' for part in parts)])
        self.parts = tuple(parts)
        self.names = {}

    def before_train(self, runner) -> None:
        """Hook into the optimizer."""
        trained = {
            name: param
            for name, param in inner_model(runner.model).named_parameters()
            if param.requires_grad
        }
        self.names = {
            part: [p for name, p in trained.items() if _within(name, part)]
            for part in self.parts
        }
        empty = [part for part, params in self.names.items() if not params]
        if empty:
            raise ValueError(
                f'GradientStatsHook(parts={self.parts}): no parameter that '
                f'is trained begins with {", ".join(empty)}. The model has '
                f'{", ".join(sorted({n.partition(".")[0] for n in trained}))}'
            )
        params = list(trained.values())

        def look(optimizer, *_):
            if not _is_skipped(optimizer):
                self.stats = self._measure(params, optimizer)

        optimizer = runner.optim_wrapper.optimizer
        self.handle = optimizer.register_step_pre_hook(look)

    def _measure(self, params: list, optimizer) -> dict[str, float]:
        # a fused optimizer takes scaled gradients, and their scale
        scale = vars(optimizer).get('grad_scale')
        scale = 1.0 if scale is None else float(scale)
        grads = [param.grad for param in params if param.grad is not None]
        largest = _maxima(grads)
        norm = torch.stack(torch._foreach_norm(grads)).norm()
        stats = dict(
            grad_max=largest.max(),
            grad_max_mean=largest.mean(),
            grad_max_std=largest.std(unbiased=False),
            grad_norm_all=norm,
        )
        for part, params in self.names.items():
            grads = [param.grad for param in params if param.grad is not None]
            if grads:
                stats[f'grad_max_{part}'] = _maxima(grads).max()
        values = torch.stack(list(stats.values())).tolist()
        return dict(zip(stats, (v / scale for v in values), strict=True))


def _is_skipped(optimizer) -> bool:
    """Whether a fused optimizer is to leave parameters as they are."""
    found = vars(optimizer).get('found_inf')
    return found is not None and bool(found)


def _within(name: str, part: str) -> bool:
    return name == part or name.startswith(f'{part}.')


def _maxima(grads: list[Tensor]) -> Tensor:
    """The largest magnitude in each gradient."""
    return torch.stack(torch._foreach_norm(grads, ord=float('inf')))
