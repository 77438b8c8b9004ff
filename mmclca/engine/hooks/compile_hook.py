# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from types import MethodType

import torch
from mmengine.hooks import Hook
from mmpretrain.models import BaseClassifier
from packaging.version import Version
from torch import nn

from mmclca.engine.training_data import count_epochs
from mmclca.errors import Error
from mmclca.models import Reducible
from mmclca.registry import HOOKS
from mmclca.utils.compile_modes import MODES, WITH_CUDA_GRAPHS
from mmclca.utils.messages import check_choice
from mmclca.utils.torch_versions import COMPILES, require_torch
from mmclca.utils.wrappers import inner_model

from .keep_rate_schedule_hook import KeepRateScheduleHook


@HOOKS.register_module()
class CompileHook(Hook):
    """Compile the backbone and head of a classifier for a run.

    Training, validation and testing run through ``torch.compile``; the first
    batch of each shape is slow. Parameter names and checkpoints stay the
    same, and the run leaves an uncompiled model. Compilation starts after
    :class:`KeepRateScheduleHook`, because each new number of tokens would be
    compiled again.

    Args:
        mode (str): ``mode`` for ``torch.compile``. 'reduce-overhead' uses
            CUDA graphs. Defaults to 'default'.
        fullgraph (bool): Raise an error if a part of the model cannot be
            compiled. Defaults to True.
        dynamic (bool, optional): Handling of batch shapes. False compiles
            once per shape, None makes the batch size dynamic at its first
            change, and True makes it dynamic from the start. Defaults to
            False.
        backend (str): ``backend`` for ``torch.compile``.
            Defaults to 'inductor'.

    Raises:
        Error: If the mode is unknown, the model is not a classifier, or
            ``mode`` uses CUDA graphs while gradients are accumulated.
    """

    def __init__(
        self,
        mode: str = 'default',
        fullgraph: bool = True,
        dynamic: bool | None = False,
        backend: str = 'inductor',
    ):
        check_choice(MODES, mode=mode)
        self.options = dict(
            mode=mode, fullgraph=fullgraph, dynamic=dynamic, backend=backend
        )
        self.first_epoch = 0
        self.compiled = []

    def before_run(self, runner) -> None:
        """Raise if the model is not a classifier, or torch is too old."""
        require_torch(
            COMPILES, 'CompileHook', 'remove it from custom_hooks (--compile)'
        )
        model = inner_model(runner.model)
        if not isinstance(model, BaseClassifier):
            raise Error(
                'CompileHook supports classifiers, not '
                f'{type(model).__name__}; remove it from custom_hooks'
            )

    def before_train(self, runner) -> None:
        """Find the first epoch with constant keep rates."""
        counts = runner.optim_wrapper._accumulative_counts
        mode = self.options['mode']
        if counts > 1 and mode in WITH_CUDA_GRAPHS:
            raise Error(
                f'CompileHook: mode={mode!r} uses CUDA graphs, which '
                'overwrite gradients accumulated with '
                f"accumulative_counts={counts}; use mode='default' or "
                "'max-autotune-no-cudagraphs'"
            )
        hooks = (
            x for x in runner.hooks if isinstance(x, KeepRateScheduleHook)
        )
        lengths = (hook.start + hook.epochs for hook in hooks)
        self.first_epoch = max(lengths, default=0)
        if self.first_epoch and count_epochs(runner) < self.first_epoch:
            runner.logger.warning(
                'CompileHook starts after KeepRateScheduleHook, in epoch '
                f'{self.first_epoch + 1}'
            )

    def _before_iter(
        self, runner, batch_idx, data_batch=None, mode='train'
    ) -> None:
        """Compile before the first batch of training, validation or test."""
        due = not self.first_epoch or count_epochs(runner) >= self.first_epoch
        if not self.compiled and due:
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
        # one CUDA-graph step for backbone and head: otherwise the head would
        # overwrite its own input
        torch.compiler.cudagraph_mark_step_begin()

    def after_run(self, runner) -> None:
        """Restore the uncompiled methods."""
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
            # bind to the module, so that copies use their own parameters
            setattr(module, method, MethodType(compiled, module))


def compiles_right() -> bool:
    """Return whether the installed torch compiles all reducers correctly.

    torch 2.12 computes different scores for three reducers in training.
    """
    return Version(torch.__version__) >= Version('2.14')
