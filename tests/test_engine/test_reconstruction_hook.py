# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pre-training with mmengine's runner: pictures, logs and resuming."""

import json
from itertools import product

import mmcv
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from small_models import build
from small_selfsup import MAE, SIDE, mirl
from tiny_run import ROOT, run_tool, write_run

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


def config(folder, model, hooks=(), epochs=2):
    """Config for pre-training on the images of the tiny config."""
    path = folder / 'tiny.py'
    cfg = Config.fromfile(path if path.exists() else write_run(folder))
    for name in product(('val', 'test'), ('cfg', 'dataloader', 'evaluator')):
        cfg.pop('_'.join(name))
    cfg.model = dict(model, data_preprocessor=NORMAL)
    load = [dict(type='LoadImageFromFile')]
    pipeline = [
        dict(type='mmclca.CacheImages', transforms=load),
        dict(type='RandomResizedCrop', scale=SIDE),
        dict(type='PackInputs'),
    ]
    loader = cfg.train_dataloader
    loader.update(batch_size=8, collate_fn=dict(type='default_collate'))
    loader.dataset.update(with_label=False, pipeline=pipeline)
    cfg.train_cfg.max_epochs = epochs
    cfg.optim_wrapper.accumulative_counts = 2
    cfg.custom_hooks = list(hooks)
    cfg.visualizer.vis_backends = [dict(type='LocalVisBackend')]
    cfg.work_dir, cfg.experiment_name = str(folder / 'work'), folder.name
    return cfg


def test_pre_training_draws_pictures_and_logs_segment_norms(tmp_path):
    hooks = (
        dict(type='mmclca.ReconstructionHook', interval=2, num_images=3),
        dict(type='mmclca.GradientStatsHook', parts=SEGMENTS),
    )
    cfg = config(tmp_path, mirl(2), hooks)
    runner = Runner.from_cfg(cfg)
    runner.train()
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


def test_pre_training_resumes(tmp_path):
    part = config(tmp_path, MAE, epochs=1)
    part.work_dir = str(tmp_path / 'parts')
    Runner.from_cfg(part).train()
    again = config(tmp_path, MAE)
    again.work_dir, again.resume = part.work_dir, True
    again.experiment_name = 'again'
    resumed = Runner.from_cfg(again)
    resumed.train()
    assert resumed.iter == 4
    assert (tmp_path / 'parts/epoch_2.pth').is_file()


def test_reconstructions_keep_visible_patches_and_add_up():
    """The sum is the main part plus the residual."""
    model = build(dict(mirl(2), data_preprocessor=NORMAL)).eval()
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
    model = build(dict(MAE, backbone=stem, data_preprocessor=NORMAL)).train()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    reconstructions(model, torch.ones(2, 3, SIDE, SIDE, dtype=torch.uint8))
    assert model.training and model.backbone.patch_embed.training
    after = model.state_dict()
    assert all(torch.equal(v, after[k]) for k, v in before.items())


def test_vis_reconstruction_tool_writes_a_picture(tmp_path, monkeypatch):
    cfg = config(tmp_path, MAE)
    cfg.dump(tmp_path / 'mae.py')
    torch.save(build(MAE).state_dict(), tmp_path / 'mae.pth')
    monkeypatch.chdir(tmp_path)
    tool = ROOT / 'tools/visualization/vis_reconstruction.py'
    words = 'mae.py mae.pth data/ash/0.png --leaves 1 --out made.png'
    run_tool(monkeypatch, tool, *words.split())
    assert mmcv.imread(tmp_path / 'made.png').std() > 10
