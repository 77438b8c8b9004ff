# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from types import MethodType

import torch
from mmengine.hooks import Hook
from mmpretrain.models.classifiers import ImageClassifier
from packaging.version import Version
from torch import nn

from mmclca.models import Reducible
from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model

from .keep_rate_warm_up_hook import KeepRateWarmUpHook

MODES = (
    'default',
    'reduce-overhead',
    'max-autotune',
    'max-autotune-no-cudagraphs',
)
WITH_CUDA_GRAPHS = ('reduce-overhead', 'max-autotune')


@HOOKS.register_module()
class CompileHook(Hook):
    """Compiles backbone and head with ``torch.compile`` for a run.

    In training, validation and testing; the first batch of each shape is
    slow. Names of parameters stay, so that checkpoints are those of a run
    without the hook, and after the run the model is as it was. While
    :class:`KeepRateWarmUpHook` changes the number of tokens, training and
    validation are not compiled: each number would be compiled anew.

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
        ValueError: If there is no such ``mode``; at the start of a run, if
            the model is no classifier with a head; if ``mode`` makes CUDA
            graphs and gradients are accumulated.
    """

    def __init__(
        self,
        mode: str = 'default',
        fullgraph: bool = True,
        dynamic: bool | None = False,
        backend: str = 'inductor',
    ):
        if mode not in MODES:
            raise ValueError(
                f'CompileHook: mode={mode!r} is not one of {", ".join(MODES)}'
            )
        self.mode = mode
        self.options = dict(
            mode=mode, fullgraph=fullgraph, dynamic=dynamic, backend=backend
        )
        self.first_iter = 0
        self.compiled = []

    def before_run(self, runner) -> None:
        """Stop at once where there is nothing to compile."""
        _classifier(runner.model)
        self.first_iter = 0

    def before_train(self, runner) -> None:
        """Find out from which iteration on the keep rates stay."""
        self._check_accumulation(runner.optim_wrapper)
        self.first_iter = _end_of_warm_up(runner)
        if runner.iter < self.first_iter:
            runner.logger.warning(
                'CompileHook waits until KeepRateWarmUpHook is done, at '
                f'iteration {self.first_iter}: until then each iteration has '
                'another number of tokens and would be compiled anew'
            )

    def _check_accumulation(self, optim_wrapper) -> None:
        counts = optim_wrapper._accumulative_counts
        if counts > 1 and self.mode in WITH_CUDA_GRAPHS:
            raise ValueError(
                f'CompileHook: mode={self.mode!r} makes CUDA graphs, whose '
                'next pass overwrites the gradients that '
                f'accumulative_counts={counts} adds up: use '
                "mode='default' or 'max-autotune-no-cudagraphs'"
            )

    def _before_iter(
        self, runner, batch_idx, data_batch=None, mode='train'
    ) -> None:
        """Compile before the first batch, in training or not."""
        if not self.compiled and runner.iter >= self.first_iter:
            self._compile(runner)
        # backbone and head are one step of CUDA graphs: without this the
        # head's would take the memory of what it reads
        torch.compiler.cudagraph_mark_step_begin()

    def after_run(self, runner) -> None:
        """Leave the model as it was."""
        for module, method in self.compiled:
            delattr(module, method)
        self.compiled = []

    def _compile(self, runner) -> None:
        model = _classifier(runner.model)
        reducible = isinstance(model.backbone, Reducible)
        self.compiled = [
            (model.backbone, 'forward_tokens' if reducible else 'forward'),
            (model.head, 'forward'),
        ]
        for module, method in self.compiled:
            function = getattr(type(module), method)
            compiled = torch.compile(function, **self.options)
            # bound, so that a copy of the module has its own parameters
            setattr(module, method, MethodType(compiled, module))
        if not compiles_right():
            runner.logger.warning(
                f'torch {torch.__version__} compiles the training of '
                'DynamicViT, PatchMerger and Sinkhorn wrongly: install torch '
                '2.14 or newer, or train without CompileHook (--compile)'
            )
        runner.logger.info(
            f'Backbone and head are compiled ({self.options["backend"]}, '
            f'mode={self.mode}): the first batch of each shape takes long'
        )


def _classifier(model: nn.Module) -> ImageClassifier:
    model = inner_model(model)
    if not (isinstance(model, ImageClassifier) and model.with_head):
        raise ValueError(
            'CompileHook is for an ImageClassifier with a head, not for '
            f'{type(model).__name__}: remove it from custom_hooks'
        )
    return model


def compiles_right() -> bool:
    """Whether compiled training of every reducer is right in this torch.

    In 2.12 the scores of three of them are others than in eager mode.
    """
    return Version(torch.__version__) >= Version('2.14')


def _end_of_warm_up(runner) -> int:
    """The first iteration with the keep rates of the config."""
    epochs = [
        hook.start + hook.epochs
        for hook in runner.hooks
        if isinstance(hook, KeepRateWarmUpHook)
    ]
    return max(epochs, default=0) * len(runner.train_dataloader)
