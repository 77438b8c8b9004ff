# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from mmclca.datasets.batches import build_dataset
from mmclca.engine.hooks import TokenVisualizationHook
from mmclca.engine.hooks.drawing_hooks import spread
from mmclca.registry import MODELS


def test_same_images_are_drawn_every_interval_epochs(config):
    cfg, found = config(), {}
    # uses random numbers
    noisy = dict(type='ColorJitter', brightness=0.5)
    cfg.val_dataloader.dataset.pipeline.insert(2, noisy)
    dataset = build_dataset(cfg, 'val')
    model = dict(cfg.model, data_preprocessor=cfg.data_preprocessor)
    runner = SimpleNamespace(
        model=MODELS.build(model).eval(),
        cfg=cfg,
        val_dataloader=SimpleNamespace(dataset=dataset),
        visualizer=SimpleNamespace(
            add_image=lambda name, *drawn: found.setdefault(name, drawn)
        ),
    )
    hook = TokenVisualizationHook(interval=2, num_images=2)
    hook.before_val(runner)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()
    for runner.epoch in (1, 2):
        assert not found
        hook.after_val_epoch(runner)
    assert np.array_equal(before[0], np.random.get_state()[1])
    assert torch.equal(before[1], torch.get_rng_state())
    (first, step), (last, _) = found.values()
    assert [*found] == ['kept_patches_0_0', 'kept_patches_15_3'] and step == 2
    assert first.std() > 10 and not np.array_equal(first, last)


def test_pictures_use_validated_weights(build, monkeypatch):
    seen = []
    draw = TokenVisualizationHook._draw_image

    def look(self, runner, dataset, index):
        seen.append(runner.model.head.fc.weight.clone())
        draw(self, runner, dataset, index)

    monkeypatch.setattr(TokenVisualizationHook, '_draw_image', look)
    runner = build(
        dict(type='EMAHook', momentum=0.5),
        dict(type='mmclca.TokenVisualizationHook', num_images=1),
        train_cfg=dict(max_epochs=1),
    )
    runner.train()
    (ema,) = [h for h in runner.hooks if type(h).__name__ == 'EMAHook']
    averaged = ema.ema_model.module.head.fc.weight
    assert torch.equal(seen[0], averaged)
    assert not torch.equal(seen[0], runner.model.head.fc.weight)


def test_spread_returns_evenly_spaced_indices():
    assert spread(100, 4) == [0, 33, 66, 99]
    assert spread(2, 4) == [0, 1]
    assert spread(5, 1) == [0]


def test_models_without_reduction_are_refused():
    backbone = MODELS.build(dict(type='LeNet5'))
    runner = SimpleNamespace(model=SimpleNamespace(backbone=backbone))
    with pytest.raises(ValueError, match='LeNet5'):
        TokenVisualizationHook().before_train(runner)
