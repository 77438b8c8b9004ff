# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""NaN and infinite losses and scores."""

from types import SimpleNamespace

import pytest
import torch
from mmengine.optim import AmpOptimWrapper, OptimWrapper
from mmpretrain.structures import DataSample

from mmclca.engine.hooks import CheckInvalidLossHook
from mmclca.engine.hooks.check_invalid_loss_hook import MAX_SKIPPED
from mmclca.errors import Error

NAN, INF = torch.tensor(torch.nan), torch.tensor(torch.inf)


def run_with(kind):
    return SimpleNamespace(iter=4, optim_wrapper=kind.__new__(kind))


@pytest.mark.parametrize('loss', [NAN, INF])
def test_training_stops_if_the_loss_is_not_finite(loss):
    hook, runner = CheckInvalidLossHook(), run_with(OptimWrapper)
    hook.after_train_iter(runner, outputs=dict(loss=torch.tensor(1e30)))
    with pytest.raises(Error, match='iteration 5'):
        hook.after_train_iter(runner, outputs=dict(loss=loss))


def test_training_continues_if_loss_scale_settles():
    hook, runner = CheckInvalidLossHook(), run_with(AmpOptimWrapper)
    for loss in (
        [INF] * MAX_SKIPPED + [torch.tensor(1.0)] + [INF] * MAX_SKIPPED
    ):
        hook.after_train_iter(runner, outputs=dict(loss=loss))
    with pytest.raises(Error):
        hook.after_train_iter(runner, outputs=dict(loss=INF))


def test_test_counts_images_if_scores_are_not_finite():
    hook = CheckInvalidLossHook()
    rows = torch.tensor([[0.5, 0.5], [torch.nan, 0.5], [torch.inf, 0.0]])
    samples = [DataSample().set_pred_score(row) for row in rows]
    hook.after_test_iter(None, outputs=samples[:1])
    hook.after_test_epoch(None)
    hook.after_test_iter(None, outputs=samples)
    with pytest.raises(Error, match='of 2 images'):
        hook.after_test_epoch(None)
