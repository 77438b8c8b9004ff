# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from mmengine.hooks import Hook


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
