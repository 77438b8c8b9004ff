# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from types import MethodType

import torch
from mmengine.hooks import Hook
from mmpretrain.models import BaseClassifier
from packaging.version import Version
from torch import nn

from mmclca.models import Reducible
from mmclca.registry import HOOKS
from mmclca.utils.compile_modes import MODES, WITH_CUDA_GRAPHS
from mmclca.utils.messages import one_of
from mmclca.utils.wrappers import inner_model

from .keep_rate_warm_up_hook import KeepRateWarmUpHook


@HOOKS.register_module()
class CompileHook(Hook):
    """Compile the backbone and head of a classifier for a run.

    By ``torch.compile``, in training, validation and testing; the first
    batch of each shape is slow. Names of parameters stay, so that checkpoints
    are those of a run without the hook, and after the run the model is as it
    was. While :class:`KeepRateWarmUpHook` changes the number of tokens,
    nothing is compiled: each number would be compiled anew.

    Args:
        mode (str): ``mode`` of ``torch.compile``. 'reduce-overhead' makes
            CUDA graphs. Defaults to 'default'.
        fullgraph (bool): Whether it is an error if a part of the model
            cannot be compiled. Defaults to True.
        dynamic (bool, optional): False compiles for each shape of a batch
            anew, None makes the batch size a variable when it first changes,
            True from the start. Defaults to False.
        backend (str): ``backend`` of ``torch.compile``.
            Defaults to 'inductor'.

    Raises:
        ValueError: If there is no such mode, the model has no backbone, or
            if ``mode`` makes CUDA graphs
            and gradients are accumulated.
    """

    def __init__(
        self,
        mode: str = 'default',
        fullgraph: bool = True,
        dynamic: bool | None = False,
        backend: str = 'inductor',
    ):
        one_of(MODES, mode=mode)
        self.options = dict(
            mode=mode, fullgraph=fullgraph, dynamic=dynamic, backend=backend
        )
        self.first_iter = 0
        self.compiled = []

    def before_run(self, runner) -> None:
        """Refuse models that cannot be compiled."""
        model = inner_model(runner.model)
        if not isinstance(model, BaseClassifier):
            raise ValueError(
                'CompileHook supports classifiers, not '
                f'{type(model).__name__}; remove it from custom_hooks'
            )

    def before_train(self, runner) -> None:
        """Find the iteration from which the keep rates are constant."""
        counts = runner.optim_wrapper._accumulative_counts
        mode = self.options['mode']
        if counts > 1 and mode in WITH_CUDA_GRAPHS:
            raise ValueError(
                f'CompileHook: mode={mode!r} uses CUDA graphs, which '
                'overwrite gradients accumulated with '
                f"accumulative_counts={counts}; use mode='default' or "
                "'max-autotune-no-cudagraphs'"
            )
        hooks = (x for x in runner.hooks if isinstance(x, KeepRateWarmUpHook))
        epochs = max((hook.start + hook.epochs for hook in hooks), default=0)
        self.first_iter = epochs * len(runner.train_dataloader)
        if runner.iter < self.first_iter:
            runner.logger.warning(
                'CompileHook starts after KeepRateWarmUpHook, at iteration '
                f'{self.first_iter}'
            )

    def _before_iter(
        self, runner, batch_idx, data_batch=None, mode='train'
    ) -> None:
        """Compile before the first batch of training, validation or test."""
        if not self.compiled and runner.iter >= self.first_iter:
            self._compile(inner_model(runner.model))
            runner.logger.info(
                f'Compiling backbone and head ({self.options}); the first '
                'batch of each shape is slow'
            )
            if not compiles_right():
                runner.logger.warning(
                    f'torch {torch.__version__} compiles the training of '
                    'DynamicViT, PatchMerger and Sinkhorn wrongly; install '
                    'torch 2.14 or newer, or remove CompileHook'
                )
        # make backbone and head one step of CUDA graphs: otherwise the head
        # would overwrite its own input
        torch.compiler.cudagraph_mark_step_begin()

    def after_run(self, runner) -> None:
        """Leave the model as it was."""
        for module, method in self.compiled:
            delattr(module, method)
        self.compiled = []

    def _compile(self, model: nn.Module) -> None:
        reducible = isinstance(model.backbone, Reducible)
        method = 'forward_tokens' if reducible else 'forward'
        self.compiled = [(model.backbone, method)]
        if model.with_head:
            self.compiled.append((model.head, 'forward'))
        for module, method in self.compiled:
            function = getattr(type(module), method)
            compiled = torch.compile(function, **self.options)
            # bound, so that a copy of the module has its own parameters
            setattr(module, method, MethodType(compiled, module))


def compiles_right() -> bool:
    """Return whether compiled training of every reducer is right in this
    torch.

    In 2.12 the scores of three of them are others than in eager mode.
    """
    return Version(torch.__version__) >= Version('2.14')
