# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch

from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.publishing import copy_weights


def test_copy_weights_selects_ema_and_copies_views():
    average, trained = torch.arange(2000.0).split(1000)
    ema = {'steps': torch.tensor(1), 'module.a': trained[:2]}
    contents = dict(state_dict=dict(a=average[:2]), ema_state_dict=ema)
    checkpoint = Checkpoint(contents, 'w.pth')
    for options, wanted in ({}, average), (dict(no_ema=True), trained):
        found = copy_weights(checkpoint, **options)
        assert found.keys() == {'a'} and found['a'].equal(wanted[:2])
        assert found['a'].untyped_storage().nbytes() == 8
