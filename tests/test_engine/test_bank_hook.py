# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Runs of Grafit."""

import pytest
import torch
from mmengine.runner import Runner

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.features import extract_features


@pytest.fixture
def grafit(config):
    """Function to read a config that trains Grafit for an epoch."""

    def grafit(*hooks, **settings):
        cfg = config(dict(type='mmclca.BankHook'), *hooks, **settings)
        cfg.model = dict(
            type='mmclca.Grafit',
            backbone=dict(cfg.model.backbone, cache=None),
            num_views=2,
            hidden=8,
            num_classes=4,
        )
        *load, pack = cfg.train_dataloader.dataset.pipeline
        flip = dict(type='RandomFlip', prob=0.5)
        two = dict(type='MultiView', num_views=2, transforms=[[flip]])
        cfg.train_dataloader.dataset.pipeline = [*load, two, pack]
        cfg.train_cfg.update(val_interval=1, max_epochs=1)
        return cfg

    return grafit


def test_bank_is_stored_in_training_and_recomputed_in_tests(
    grafit, tmp_path, tiny_file
):
    runner = Runner.from_cfg(grafit())
    runner.train()
    weights = str(tmp_path / 'work/epoch_1.pth')
    stored = torch.load(weights, weights_only=False)['state_dict']
    assert stored['head.bank'].equal(runner.model.head.bank)
    tested = Runner.from_cfg(grafit(name='test', load_from=weights))
    assert tested.test()['accuracy/top1'] >= 0
    bank = tested.model.head.bank
    assert not bank.equal(stored['head.bank'])
    found = TokenReductionInferencer(weights)
    image = str(tiny_file.parent / 'data/ash/0.png')
    (row,), unread = extract_features(found, [image])
    assert not unread
    close = torch.testing.assert_close
    close(bank[0], row / row.norm(), rtol=1e-4, atol=1e-5)
    assert found(image)[0]['pred_class'] == 'ash'


def test_grafit_run_is_refused_if_class_count_differs(grafit):
    cfg = grafit(dict(type='mmclca.ClassCountHook'))
    cfg.model.num_classes = 3
    with pytest.raises(ValueError, match='model.num_classes=4'):
        Runner.from_cfg(cfg).train()
