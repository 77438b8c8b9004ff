# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import re
from functools import partial

import mmcv
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmpretrain import get_model
from tiny_run import CLASSES, ROOT, exit_code, run_tool, write_run

from mmclca.visualization import draw_heat_maps

TOOLS = ROOT / 'tools/visualization'
CAM = ('0.pth', 'data/elm/0.png')


@pytest.fixture
def tiny(tmp_path):
    """Config, two checkpoints and an image."""
    config = write_run(tmp_path)
    cfg = Config.fromfile(config)
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=CLASSES))
    for seed in (0, 1):
        torch.manual_seed(seed)
        model = get_model(cfg, pretrained=False)
        for param in model.parameters():
            torch.nn.init.normal_(param, std=0.3)
        stored = dict(state_dict=model.state_dict(), meta=meta)
        torch.save(stored, tmp_path / f'{seed}.pth')
    image = tmp_path / 'data' / 'elm' / '0.png'
    return config, tmp_path / '0.pth', tmp_path / '1.pth', image


@pytest.fixture
def draw(monkeypatch, tmp_path):
    """Runs a tool in this process; returns the picture."""

    def draw(tool, *arguments, option='--out', out='out.png'):
        out = tmp_path / out
        arguments = (*arguments, '--device', 'cpu', option, out)
        run_tool(monkeypatch, TOOLS / f'{tool}.py', *arguments)
        return mmcv.imread(out)

    return draw


def test_cam(tiny, draw):
    config, first, _, image = tiny

    def cam(*arguments):
        return draw('vis_cam', *arguments, option='--save-path')

    # the order of mmpretrain's tool, and that of the others
    picture = cam(image, config, first)
    assert np.array_equal(picture, cam(first, image))
    name = 'backbone.layers[-1].ln1'
    assert np.array_equal(picture, cam(first, image, '--target-layers', name))
    one = cam(first, image, '--target-category', 1)
    three = cam(first, image, '--target-category', 1, 2, 3)
    assert three.shape[1] > 1.7 * one.shape[1]
    layers = cam(first, image, '--target-layers', 0, 1, 2)
    assert not np.array_equal(layers, picture)
    as_there = cam(image, config, first, '--vit-like', '--num-extra-tokens', 1)
    assert np.array_equal(as_there, picture)
    other = cam(first, image, '--method', 'LayerCAM', '--aug-smooth')
    assert not np.array_equal(other, picture)


def test_cam_says_how_much_is_left(tiny, draw, monkeypatch):
    seen = []
    monkeypatch.setattr(
        'mmclca.visualization.draw_heat_maps',
        lambda rows, out, label: (
            seen.append(list(rows[0].maps)),
            draw_heat_maps(rows, out, label),
        ),
    )

    def titles(*layers):
        files = tiny[1], tiny[3]
        draw('vis_cam', *files, '--target-layers', *layers,
             '--target-category', 1, option='--save-path')  # fmt: skip
        (title,) = seen.pop()
        return title.splitlines()[2:]

    assert titles(0) == titles(1) == []
    (left,) = titles(-1)
    assert left in ('8 of 16 patches left', '9 of 16 patches left')
    assert titles(0, 2) == [left]  # 9 unless a CLR token is kept


def test_cam_lists_layers(tiny, monkeypatch, capsys):
    run_tool(monkeypatch, TOOLS / 'vis_cam.py', tiny[1], '--preview-model')
    lines = capsys.readouterr().out.splitlines()
    lines = [line for line in lines if line.startswith('backbone')]
    assert lines[0] == 'backbone.layers[0].ln1' and len(lines) > 1
    assert any(line.endswith('(reduction 1)') for line in lines)


@pytest.fixture
def tsne(monkeypatch, tmp_path):
    """Runs vis_tsne.py; returns the picture of a stage."""

    def tsne(*arguments, stage='pre_logits'):
        options = dict(perplexity=3, n_iter=250, work_dir=tmp_path / 'new')
        options.update(vis_stage=stage, device='cpu')
        for name, value in options.items():
            arguments += (f'--{name.replace("_", "-")}', value)
        run_tool(monkeypatch, TOOLS / 'vis_tsne.py', *arguments)
        return mmcv.imread(tmp_path / 'new' / f'tsne_{stage}.png')

    return tsne


@pytest.mark.slow
def test_tsne(tiny, tsne, capsys):
    config, first, second, _ = tiny
    picture = tsne(config, '--checkpoint', first)
    assert 'random' not in capsys.readouterr().err
    assert picture.std() > 5
    assert np.array_equal(picture, tsne(first))
    assert not np.array_equal(picture, tsne(second))
    assert tsne(first, '--test-cfg', config, stage='backbone').std() > 5
    named = tsne(first, '--legend', '--class-idx', 1, 3)
    assert not np.array_equal(named, picture)
    tsne(config)
    assert 'weights are random' in capsys.readouterr().err
    with pytest.raises(SystemExit, match='-idx 4: the data have .* 0 to 3'):
        tsne(first, '--class-idx', 4)


@pytest.mark.parametrize(
    ('tool', 'arguments', 'message'),
    [
        ('vis_rollout', ['0.pth'], 'nothing to draw: name images'),
        ('vis_rollout', ['0.pth', 'gone.png'], 'not read, no images.*gone'),
        ('vis_rollout', ['tiny.py', 'a.png'], '0 checkpoints .* 1 configs'),
        ('vis_rollout', ['0.pth', '1.pth', 'a.png'], '2 checkpoints'),
        ('vis_rollout', ['gone.py', '0.pth', 'data/elm/0.png'], 'No such'),
        ('vis_cka', ['0.pth', '--batch-size', '17'], 'has 16 images'),
        ('vis_confusions', ['gone.pth'], 'gone.pth'),
        (
            'vis_cam',
            [*CAM, '--target-category', '4', '1', '9'],
            '-category 4 9: .* labels 0 to 3',
        ),
        ('vis_cam', [*CAM, '--target-layers', '3'], 'layer=3 is not there'),
        (
            'vis_cam',
            [*CAM, '--target-layers', 'head'],
            'a number, or backbone.layers',
        ),
        (
            'vis_cross_patch',
            ['0.pth'],
            'a TokenReductionViT, has no linear layers across patches',
        ),
    ],
)
def test_bad_input_ends_in_a_line(
    tiny, draw, monkeypatch, tmp_path, capsys, tool, arguments, message
):
    monkeypatch.chdir(tmp_path)
    option = '--save-path' if tool == 'vis_cam' else '--out'
    assert exit_code(partial(draw, tool, *arguments, option=option)) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert re.search(rf'^{tool}.py: error: .*{message}', line)
