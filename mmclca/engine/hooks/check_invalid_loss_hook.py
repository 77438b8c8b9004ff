# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from mmengine.hooks import Hook
from mmengine.optim import AmpOptimWrapper
from mmpretrain.structures import DataSample

from mmclca.errors import Error
from mmclca.registry import HOOKS

MAX_SKIPPED = 100  # consecutive steps that a loss scale may need to settle


@HOOKS.register_module()
class CheckInvalidLossHook(Hook):
    """Stop a training or a test with NaN or infinite numbers.

    Training ends at the first infinite loss. A loss scale skips
    such steps, so mixed-precision training only ends after more than
    ``MAX_SKIPPED`` consecutive steps. A test reports its metrics and then
    ends with an error if some scores were not finite.
    """

    priority = 'LOWEST'  # run after metrics are printed
    skipped = invalid = 0

    def after_train_iter(self, runner, outputs=None, **_):
        loss = torch.as_tensor((outputs or {}).get('loss', 0)).detach()
        self.skipped = 0 if loss.isfinite().all() else self.skipped + 1
        scaled = isinstance(runner.optim_wrapper, AmpOptimWrapper)
        if self.skipped > MAX_SKIPPED * scaled:
            raise Error(
                f'the loss of iteration {runner.iter + 1} is {loss}; lower '
                'the learning rate, or check data, weights and teacher'
            )

    def after_test_iter(self, runner, outputs=None, **_):
        samples = [x for x in outputs or () if isinstance(x, DataSample)]
        for score in (x.pred_score for x in samples if 'pred_score' in x):
            self.invalid = self.invalid + (~score.isfinite()).any()

    def after_test_epoch(self, runner, metrics=None):
        if self.invalid:
            raise Error(
                f'the scores of {int(self.invalid)} images are NaN or '
                'infinite (counted as wrong); check the weights, or omit `amp`'
            )
