# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures, logged norms and the tool of pre-training."""

import json
from itertools import product

import mmcv
import numpy as np
import pytest
import torch
from mmengine.runner import Runner
from small_models import build as build_model
from small_selfsup import MAE, SIDE, mirl
from tiny_run import ROOT, run_tool

from mmclca.visualization import reconstructions

NORMAL = dict(
    type='SelfSupDataPreprocessor',
    mean=[120.0, 110.0, 100.0],
    std=[60.0] * 3,
    to_rgb=True,
)
SEGMENTS = {
    f'segment{g}': [f'backbone.layers.{i}' for i in (2 * g - 2, 2 * g - 1)]
    for g in (1, 2)
}


@pytest.fixture
def pretraining(config):
    """Function to read a config for pre-training on the tiny images."""

    def pretraining(model, *hooks):
        cfg = config(*hooks)
        for name in product(
            ('val', 'test'), ('cfg', 'dataloader', 'evaluator')
        ):
            cfg.pop('_'.join(name))
        cfg.model = dict(model, data_preprocessor=NORMAL)
        loader = cfg.train_dataloader
        loader.update(batch_size=8, collate_fn=dict(type='default_collate'))
        load, _, pack = loader.dataset.pipeline
        crop = dict(type='RandomResizedCrop', scale=SIDE)
        cache = dict(type='mmclca.CacheImages', transforms=[load])
        loader.dataset.update(with_label=False, pipeline=[cache, crop, pack])
        cfg.optim_wrapper.accumulative_counts = 2
        cfg.visualizer.vis_backends = [dict(type='LocalVisBackend')]
        return cfg

    return pretraining


def test_pre_training_draws_pictures_and_logs_segment_norms(
    pretraining, tmp_path
):
    hooks = (
        dict(type='mmclca.ReconstructionHook', interval=2, num_images=2),
        dict(type='mmclca.GradientStatsHook', parts=SEGMENTS),
    )
    Runner.from_cfg(pretraining(mirl(2), *hooks)).train()
    (picture,) = tmp_path.glob('work/*/vis_data/vis_image/*.png')
    assert picture.name == 'reconstructions_2.png'
    assert mmcv.imread(picture).std() > 10
    (file,) = tmp_path.glob('work/*/vis_data/scalars.json')
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    named = [line for line in lines if 'grad_norm_segment2' in line]
    for line in named:
        parts = [line[f'grad_norm_segment{g}'] for g in (1, 2)]
        assert 0 < np.hypot(*parts) < line['grad_norm_all']
    assert named and all('loss_pair1' in line for line in named)


def test_reconstructions_keep_visible_patches_and_add_up():
    """The sum is the main part plus the residual."""
    model = build_model(dict(mirl(2), data_preprocessor=NORMAL)).eval()
    inputs = torch.randint(0, 255, (2, 3, SIDE, SIDE), dtype=torch.uint8)
    torch.manual_seed(1)
    (found, _) = reconstructions(model, inputs)
    assert [*found] == ['image', 'visible', 'main 1', 'residual 1', 'sum 1']
    image = inputs[0].flip(0).permute(1, 2, 0).numpy().astype(int)
    assert abs(found['image'].astype(int) - image).max() <= 1
    grey = np.array(NORMAL['mean'])
    hidden = (abs(found['visible'] - grey) < 1).all(axis=-1)
    assert hidden.mean() == pytest.approx(0.75, abs=0.01)
    kept = abs(found['sum 1'].astype(int) - found['image'])[~hidden]
    assert kept.max() == 0
    parts = found['main 1'].astype(int) + found['residual 1'] - grey
    inside = (found['sum 1'] > 2) & (found['sum 1'] < 253)
    inside &= (found['main 1'] % 255 > 0) & (found['residual 1'] % 255 > 0)
    inside &= hidden[..., None]
    assert abs(parts - found['sum 1'])[inside].max() <= 3


def test_reconstructions_leave_the_model_unchanged():
    """This includes BatchNorm statistics in the stem."""
    stem = dict(MAE['backbone'], stem=dict(type='mmclca.HMLPStem'))
    model = dict(MAE, backbone=stem, data_preprocessor=NORMAL)
    model = build_model(model).train()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    reconstructions(model, torch.ones(2, 3, SIDE, SIDE, dtype=torch.uint8))
    assert model.training and model.backbone.patch_embed.training
    after = model.state_dict()
    assert all(torch.equal(v, after[k]) for k, v in before.items())


def test_vis_reconstruction_tool_writes_a_picture(
    pretraining, tmp_path, monkeypatch
):
    cfg = pretraining(MAE)
    cfg.dump(tmp_path / 'mae.py')
    torch.save(build_model(MAE).state_dict(), tmp_path / 'mae.pth')
    monkeypatch.chdir(tmp_path)
    tool = ROOT / 'tools/visualization/vis_reconstruction.py'
    image = f'{cfg.train_dataloader.dataset.data_root}/ash/0.png'
    words = f'mae.py mae.pth {image} --leaves 1 --out made.png'
    run_tool(monkeypatch, tool, *words.split())
    assert mmcv.imread(tmp_path / 'made.png').std() > 10
