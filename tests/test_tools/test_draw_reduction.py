# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

import mmcv
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS
from tiny_run import ROOT, exit_code, run_tool, write_run

TOOL = ROOT / 'tools/visualization/draw_reduction.py'


@pytest.fixture
def config(tmp_path):
    return write_run(tmp_path)


@pytest.fixture
def draw(monkeypatch, tmp_path):
    """Runs the tool in this process; returns the picture."""

    def draw(*arguments):
        out = tmp_path / 'new/out.png'
        run_tool(monkeypatch, TOOL, *arguments, '--out', out)
        return mmcv.imread(out)

    return draw


def test_seed_decides_on_leaves_and_random_weights(config, draw):
    first = draw(config, '--leaves', 1)
    assert np.array_equal(first, draw(config, '--leaves', 1))
    assert not np.array_equal(first, draw(config, '--leaves', 1, '--seed', 1))


def test_checkpoint_decides_on_what_is_kept(config, draw, tmp_path):
    image = tmp_path / 'data/oak/0.png'
    model = MODELS.build(Config.fromfile(config).model)
    pictures = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        for param in model.parameters():
            torch.nn.init.normal_(param)
        torch.save(model.state_dict(), tmp_path / 'model.pth')
        pictures.append(draw(config, tmp_path / 'model.pth', image))
    assert not np.array_equal(*pictures)


def test_weights_that_a_training_begins_with(config, draw, tmp_path, capsys):
    model = MODELS.build(Config.fromfile(config).model)
    for param in model.backbone.parameters():
        torch.nn.init.normal_(param)
    torch.save(model.backbone.state_dict(), tmp_path / 'part.pth')
    part = ('--pretrained', tmp_path / 'part.pth')
    begun = draw(config, '--leaves', 1, *part)
    assert 'random' not in capsys.readouterr().err
    assert not np.array_equal(begun, draw(config, '--leaves', 1))
    assert 'weights are random' in capsys.readouterr().err
    with pytest.raises(SystemExit, match='2 parameters of the model are'):
        draw(config, tmp_path / 'part.pth', '--leaves', 1)
    with pytest.raises(SystemExit):
        draw(config, tmp_path / 'part.pth', '--leaves', 1, *part)
    assert 'leave one out' in capsys.readouterr().err


def test_needs_a_reduction(config, draw):
    with pytest.raises(SystemExit, match='reduces nothing'):
        draw(
            *(config, '--leaves', 1, '--cfg-options'),
            'model.backbone.reducer=None',
            'model.backbone.cache=None',
            'model.backbone.reduce_at=()',
        )


def test_names_all_images_that_cannot_be_read(config, draw, tmp_path):
    (tmp_path / 'text.png').write_text('no image')
    bad = [tmp_path / 'text.png', tmp_path / 'gone.png']
    with pytest.raises(SystemExit) as error:
        draw(config, tmp_path / 'data/oak/0.png', *bad)
    assert all(str(path) in str(error.value) for path in bad)


@pytest.mark.parametrize(
    'words, message',
    [
        ('tiny.py', 'nothing to draw'),
        ('tiny.py weights.pth', 'nothing to draw'),
        ('tiny.py --leaves -1', 'nothing to draw'),
        ('tiny.py --leaves 1 --out out.txt', 'must end in'),
        ('tiny.py gone.pth --leaves 1', 'gone.pth'),
        ('gone.py --leaves 1', 'gone.py'),
    ],
)
def test_mistakes(config, monkeypatch, capsys, words, message):
    monkeypatch.chdir(config.parent)
    words = ('--out=out.png', *words.split())
    assert exit_code(run_tool, monkeypatch, TOOL, *words) == 2
    assert message in capsys.readouterr().err
