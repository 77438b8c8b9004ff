# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Hooks of a test: whole weights, and branches joined."""

from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmclca.checkpoints.loading import load_trained
from mmclca.models import fuse, fusible
from mmclca.utils.wrappers import inner_model


def register_hooks(runner: Runner, fused: bool = False) -> None:
    """Give a runner of a test its hooks; those that join branches too."""
    hooks = [CompleteWeightsHook()]
    if fused:
        joined = FuseHook()
        hooks += [joined, UnfuseHook(joined)]
    for hook in hooks:
        runner.register_hook(hook)


class CompleteWeightsHook(Hook):
    """Stop before the first image where the head would be one of noise."""

    priority = 'HIGHEST'  # before EMA takes its weights

    def after_load_checkpoint(self, runner, checkpoint):
        load_trained(runner.model, checkpoint)
        checkpoint['state_dict'] = inner_model(runner.model).state_dict()


class FuseHook(Hook):
    """Test what is joined for inference, of the weights that EMA chose."""

    priority = 'VERY_LOW'  # after EMA puts its weights into the model
    modules = ()

    def before_test_epoch(self, runner):
        backbones = fusible(runner.model)
        self.modules = [(one, dict(one.named_children())) for one in backbones]
        fuse(runner.model)


class UnfuseHook(Hook):
    """Take apart again what :class:`FuseHook` joined."""

    priority = 'HIGHEST'  # before EMA takes its weights back

    def __init__(self, fused):
        self.fused = fused

    def after_test_epoch(self, runner, metrics=None):
        for backbone, modules in self.fused.modules:
            for name, module in modules.items():
                backbone.add_module(name, module)
