# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from mmengine.hooks import Hook
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from mmclca.errors import Error
from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model


class EpochMaximaHook(Hook):
    """Log values per step and their maximum per epoch.

    A subclass sets ``stats`` to the values of a step, and ``handle`` to the
    handle of its PyTorch hook. mmengine logs the values with the loss, as
    ``train/NAME``, and passes them to its visualizers.

    Args:
        logged (list[str]): Names of values whose epoch maximum is logged as
            ``epoch/NAME``, NaN for an epoch without values above 0.
    """

    def __init__(self, logged: list[str]):
        self.logged = logged
        self.stats: dict[str, float] | None = None
        self.handle: RemovableHandle | None = None
        self.largest: dict[str, float] = {}

    def after_train(self, runner) -> None:
        """Remove the PyTorch hook."""
        if self.handle is not None:
            self.handle.remove()

    def after_train_iter(
        self, runner, batch_idx, data_batch=None, outputs=None
    ) -> None:
        """Log the values of the last step, if any."""
        if self.stats is None:
            return
        for name, value in self.stats.items():
            runner.message_hub.update_scalar(f'train/{name}', value)
            if value > self.largest.get(name, 0.0):
                self.largest[name] = value
        self.stats = None

    def after_train_epoch(self, runner) -> None:
        """Log the epoch maxima as ``epoch/NAME``."""
        for name in self.logged:
            value = self.largest.get(name, torch.nan)
            runner.message_hub.update_scalar(f'epoch/{name}', value)
        self.largest = {}


@HOOKS.register_module()
class GradientStatsHook(EpochMaximaHook):
    """Log gradient magnitudes in every iteration with an optimizer step.

    `Cross-Layer Cache Aggregation for Token Reduction in Ultra-Fine-Grained
    Image Recognition`, Fig. 4, plots the largest magnitude, ``grad_max``.
    Gradients are read just before the optimizer step: accumulated over
    iterations and processes, unscaled and clipped. Steps that mixed
    precision skips due to overflow are not logged. The logged values are:

    - ``grad_max``: largest magnitude over all parameters;
    - ``grad_max_PART``: largest magnitude in a model part;
    - ``grad_norm_PART``: Euclidean gradient norm of a model part;
    - ``grad_max_mean``, ``grad_max_std``: mean and standard deviation over
      parameters of the largest magnitude per parameter;
    - ``grad_norm_all``: Euclidean norm over all parameters.

    Args:
        parts (tuple[str] | dict[str, list[str]]): Parameter name prefixes,
            each logged as its own part; or a dict from part names to
            prefixes, such as the layers in a segment. Defaults to
            ``('backbone', 'head')``.

    Raises:
        Error: At the start of training, if a part lacks trainable
            parameters.
    """

    def __init__(self, parts: tuple[str, ...] | dict = ('backbone', 'head')):
        super().__init__(['grad_max', *(f'grad_max_{part}' for part in parts)])
        if not isinstance(parts, dict):
            parts = {part: [part] for part in parts}
        self.parts = parts
        self.parameters = {}

    def before_train(self, runner) -> None:
        """Register a hook before the optimizer step."""
        trained = {
            name: param
            for name, param in inner_model(runner.model).named_parameters()
            if param.requires_grad
        }
        self.parameters = {
            part: [
                parameter
                for name, parameter in trained.items()
                if any(f'{name}.'.startswith(f'{start}.') for start in starts)
            ]
            for part, starts in self.parts.items()
        }
        empty = [
            part for part, params in self.parameters.items() if not params
        ]
        if empty:
            raise Error(
                f'GradientStatsHook(parts={(*self.parts,)}): no trained '
                f'parameter begins with {", ".join(empty)}; use '
                f'{", ".join(sorted({n.partition(".")[0] for n in trained}))}'
            )
        params = list(trained.values())

        def measure(optimizer, *_):
            # found_inf makes a fused optimizer skip the step
            if not vars(optimizer).get('found_inf'):
                self.stats = self._measure(params, optimizer)

        optimizer = runner.optim_wrapper.optimizer
        self.handle = optimizer.register_step_pre_hook(measure)

    def _measure(self, params: list, optimizer) -> dict[str, float]:
        """Return the logged values by name, unscaled."""
        # a fused optimizer receives scaled gradients with their scale
        scale = float(vars(optimizer).get('grad_scale') or 1)
        largest = _norms(params, torch.inf)
        stats = dict(
            grad_max=largest.max(),
            grad_max_mean=largest.mean(),
            grad_max_std=largest.std(unbiased=False),
            grad_norm_all=_norms(params).norm(),
        )
        for part, params in self.parameters.items():
            if any(param.grad is not None for param in params):
                stats[f'grad_max_{part}'] = _norms(params, torch.inf).max()
                stats[f'grad_norm_{part}'] = _norms(params).norm()
        values = torch.stack(list(stats.values())).tolist()
        return dict(zip(stats, (v / scale for v in values), strict=True))


def _norms(params: list[Tensor], ord: float = 2) -> Tensor:
    """Norm per gradient; order infinity is the largest magnitude."""
    grads = [param.grad for param in params if param.grad is not None]
    return torch.stack(torch._foreach_norm(grads, ord=ord))
