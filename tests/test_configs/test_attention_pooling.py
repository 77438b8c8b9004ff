# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Attention pooling on a ResNet, and from one query to one a class."""

from copy import deepcopy

import pytest
from every_config import FOLDER, build, read

from mmclca.evaluation.cost import count
from mmclca.registry import MODELS

ONE, EACH, RESNET = (
    FOLDER / f'patchconvnet/{name}-50e_leaf40-224px.py'
    for name in (
        'patchconvnet-s60_1xb32',
        'patchconvnet-s60-per-class_1xb16',
        'attention-pool_resnet50_1xb32',
    )
)


def test_cost_on_a_resnet():
    """4.6 GMACs in the thesis, in which it is 4.1 with the average."""
    model = deepcopy(build(RESNET))
    pooled = count(model, (224, 224)).flops
    model.neck = MODELS.build(dict(type='GlobalAveragePooling'))
    average = count(model, (224, 224)).flops
    assert pooled == pytest.approx(4.6e9, rel=0.015)
    assert average == pytest.approx(4.1e9, rel=0.01)
    N, d = 49, 2048
    norms = (N + 3) * d
    assert pooled - average == norms + 2 * (N + 2) * d * d + 2 * (
        N + 1
    ) * d + (6 * d * d)


def test_slower_and_in_smaller_batches():
    one, each = read(ONE), read(EACH)
    assert each.optim_wrapper.optimizer.lr < one.optim_wrapper.optimizer.lr
    assert each.train_dataloader.batch_size < one.train_dataloader.batch_size
    assert each.load_from == f'work_dirs/{ONE.stem}/epoch_50.pth'


def test_only_pooling_and_head_are_trained():
    trained = {n for n, p in build(EACH).named_parameters() if p.requires_grad}
    parts = {name.split('.')[1] for name in trained}
    assert parts == {'pool', 'weight', 'bias'}
