# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from mmengine.hooks import Hook
from torch import Tensor

from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model


class EpochMaximaHook(Hook):
    """Logs values of each step, and the largest of each epoch.

    A subclass puts the values of a step into ``stats``, and what removes its
    hook of PyTorch into ``handle``. mmengine logs the values with the loss,
    as ``train/NAME``, and hands them to its visualizers.

    Args:
        logged (list[str]): Names of the values whose largest of an epoch is
            kept, as ``epoch/NAME``; NaN where an epoch had none.
    """

    def __init__(self, logged: list[str]):
        self.logged = logged
        self.stats = None
        self.handle = None
        self.largest = {}

    def after_train(self, runner) -> None:
        """Remove the hook of PyTorch."""
        self.handle.remove()

    def after_train_iter(
        self, runner, batch_idx, data_batch=None, outputs=None
    ) -> None:
        """Log the values of the last step, where it has any."""
        if self.stats is None:
            return
        for name, value in self.stats.items():
            runner.message_hub.update_scalar(f'train/{name}', value)
            if value > self.largest.get(name, 0.0):
                self.largest[name] = value
        self.stats = None

    def after_train_epoch(self, runner) -> None:
        """Keep the largest values of the epoch, under ``epoch/``."""
        for name in self.logged:
            value = self.largest.get(name, torch.nan)
            runner.message_hub.update_scalar(f'epoch/{name}', value)
        self.largest = {}


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
    - ``grad_norm_PART``: the Euclidean norm of its gradients;
    - ``grad_max_mean``, ``grad_max_std``: mean and standard deviation over
      parameters of each parameter's largest magnitude;
    - ``grad_norm_all``: the Euclidean norm of all gradients.

    Args:
        parts (tuple[str] | dict[str, list[str]]): Names with which
            parameters begin, for values of their own; or such names by what
            to call them, as of the layers of a segment. Defaults to
            ``('backbone', 'head')``.

    Raises:
        ValueError: At the start of training, if a part has no parameters
            that are trained.
    """

    def __init__(self, parts: tuple[str, ...] | dict = ('backbone', 'head')):
        super().__init__(['grad_max', *(f'grad_max_{part}' for part in parts)])
        named = isinstance(parts, dict)
        self.parts = parts if named else {part: [part] for part in parts}
        self.names = {}

    def before_train(self, runner) -> None:
        """Hook into the optimizer."""
        trained = {
            name: param
            for name, param in inner_model(runner.model).named_parameters()
            if param.requires_grad
        }
        self.names = {
            part: [p for n, p in trained.items() if _within(n, starts)]
            for part, starts in self.parts.items()
        }
        empty = [part for part, params in self.names.items() if not params]
        if empty:
            raise ValueError(
                f'GradientStatsHook(parts={(*self.parts,)}): no trained '
                f'parameter begins with {", ".join(empty)}; use '
                f'{", ".join(sorted({n.partition(".")[0] for n in trained}))}'
            )
        params = list(trained.values())

        def look(optimizer, *_):
            # found_inf makes a fused optimizer skip the step
            if not vars(optimizer).get('found_inf'):
                self.stats = self._measure(params, optimizer)

        optimizer = runner.optim_wrapper.optimizer
        self.handle = optimizer.register_step_pre_hook(look)

    def _measure(self, params: list, optimizer) -> dict[str, float]:
        # a fused optimizer takes scaled gradients, and their scale
        scale = float(vars(optimizer).get('grad_scale') or 1)
        largest = _norms(params, torch.inf)
        stats = dict(
            grad_max=largest.max(),
            grad_max_mean=largest.mean(),
            grad_max_std=largest.std(unbiased=False),
            grad_norm_all=_norms(params).norm(),
        )
        for part, params in self.names.items():
            if any(param.grad is not None for param in params):
                stats[f'grad_max_{part}'] = _norms(params, torch.inf).max()
                stats[f'grad_norm_{part}'] = _norms(params).norm()
        values = torch.stack(list(stats.values())).tolist()
        return dict(zip(stats, (v / scale for v in values), strict=True))


def _within(name: str, starts: list[str]) -> bool:
    return any(f'{name}.'.startswith(f'{start}.') for start in starts)


def _norms(params: list[Tensor], ord: float = 2) -> Tensor:
    """Return the norm of each gradient, of infinite order its maximum."""
    grads = [param.grad for param in params if param.grad is not None]
    return torch.stack(torch._foreach_norm(grads, ord=ord))
