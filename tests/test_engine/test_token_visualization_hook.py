# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

import mmcv
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from tiny_run import write_run

from mmclca.engine.hooks import TokenVisualizationHook
from mmclca.engine.hooks.drawing_hooks import spread


def train(tmp_path, folder, hooks, **options):
    cfg = Config.fromfile(write_run(tmp_path))
    cfg.merge_from_dict(
        {
            'custom_hooks': hooks,
            'work_dir': str(tmp_path / folder),
            # runs with the same name and second would share a visualizer
            'experiment_name': tmp_path.name,
            'visualizer.vis_backends': [dict(type='LocalVisBackend')],
            **options,
        }
    )
    runner = Runner.from_cfg(cfg)
    runner.train()
    return runner


def pictures(tmp_path, folder):
    found = (tmp_path / folder).glob('*/vis_data/vis_image/*.png')
    return {path.name: mmcv.imread(path) for path in found}


def test_same_images_are_drawn_every_interval_epochs(tmp_path):
    hook = dict(type='mmclca.TokenVisualizationHook', interval=2, num_images=3)
    train(tmp_path, 'work', [hook], **{'train_cfg.max_epochs': 4})
    found = pictures(tmp_path, 'work')
    first, middle, last = 'survivors_0_0', 'survivors_8_0', 'survivors_15_3'
    names = {
        f'{n}_{step}.png' for n in (first, middle, last) for step in (2, 4)
    }
    assert set(found) == names
    picture = found[f'{first}_2.png']
    assert picture.std() > 10
    # the original image is the same, regardless of the kept tokens
    again = found[f'{first}_4.png']
    height, width = picture.shape[:2]
    itself = slice(height // 3, 2 * height // 3), slice(width // 5, width // 3)
    assert np.array_equal(picture[itself], again[itself])
    assert not np.array_equal(picture, found[f'{last}_2.png'])


@pytest.mark.slow
def test_training_is_the_same_without_the_hook(tmp_path):
    hook = dict(type='mmclca.TokenVisualizationHook')
    noisy = dict(type='ColorJitter', brightness=0.5)  # uses random numbers
    cfg = Config.fromfile(write_run(tmp_path / 'new'))
    pipeline = cfg.val_dataloader.dataset.pipeline
    pipeline.insert(2, noisy)
    options = {'val_dataloader.dataset.pipeline': pipeline}
    states = []
    for name, hooks in (('without', []), ('with', [hook])):
        (tmp_path / name).mkdir()
        runner = train(tmp_path / name, 'work', hooks, **options)
        states.append(runner.model.state_dict())
    assert not pictures(tmp_path / 'without', 'work')
    assert len(pictures(tmp_path / 'with', 'work')) == 8
    for name, value in states[0].items():
        assert torch.equal(value, states[1][name]), name


def test_pictures_use_validated_weights(tmp_path, monkeypatch):
    seen = []
    draw = TokenVisualizationHook._draw_image

    def look(self, runner, dataset, index):
        seen.append(runner.model.head.fc.weight.clone())
        draw(self, runner, dataset, index)

    monkeypatch.setattr(TokenVisualizationHook, '_draw_image', look)
    hooks = [
        dict(type='EMAHook', momentum=0.5),
        dict(type='mmclca.TokenVisualizationHook', num_images=1),
    ]
    runner = train(tmp_path, 'work', hooks, **{'train_cfg.max_epochs': 1})
    (ema,) = [h for h in runner.hooks if type(h).__name__ == 'EMAHook']
    averaged = ema.ema_model.module.head.fc.weight
    assert torch.equal(seen[0], averaged)
    assert not torch.equal(seen[0], runner.model.head.fc.weight)


def test_spread_returns_evenly_spaced_indices():
    assert spread(100, 4) == [0, 33, 66, 99]
    assert spread(2, 4) == [0, 1]
    assert spread(5, 1) == [0]


def test_models_without_reduction_are_refused(tmp_path):
    hook = dict(type='mmclca.TokenVisualizationHook')
    nothing = dict(reducer=None, cache=None, reduce_at=())
    nothing = {f'model.backbone.{key}': v for key, v in nothing.items()}
    with pytest.raises(ValueError, match='reduce_at'):
        train(tmp_path, 'work', [hook], **nothing)
