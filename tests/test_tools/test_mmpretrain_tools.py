# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""MMPretrain's own tools, on configs of ours."""

import runpy
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import matplotlib
import matplotlib.pyplot as plt
import mmcv
import pytest
from tiny_model import write_tiny
from tiny_run import ROOT, run_tool, train_with_hooks

matplotlib.use('agg')
TOOLS = Path(find_spec('mmpretrain').origin).parent / '.mim/tools'
NAME = 'clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px.py'
CONFIG = ROOT / 'configs/clca' / NAME


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Runs a tool; gives what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(tool, *arguments):
        words = [tool, *map(str, arguments)]
        monkeypatch.setattr(sys, 'argv', words)
        runpy.run_path(str(TOOLS / tool))['main']()
        return capsys.readouterr().out

    return run


DECAY = 'lf-evit-kr50_deit-tiny-p16_1xb32-20e_leaf40-224px'
SCHEDULER = 'visualization/vis_scheduler.py'
SIZE = ('--dataset-size', 240, '--not-show')


def test_vis_scheduler(run):
    """On a stand-in for the data set, whose metainfo is None."""
    said = run(SCHEDULER, CONFIG, *SIZE, '--save-path', 'lr.png')
    assert 'Iterations per epoch: 7' in said
    assert mmcv.imread('lr.png').std() > 10


def test_our_vis_scheduler(monkeypatch, tmp_path, capsys):
    """Of a config by its name, with layer-wise decay."""
    monkeypatch.chdir(tmp_path)
    draw = partial(run_tool, monkeypatch, ROOT / 'tools' / SCHEDULER)
    draw(DECAY, *SIZE, '--save-path', 'lr.png')
    assert 'Iterations per epoch: 7' in capsys.readouterr().out
    (line,) = plt.gca().lines
    values = line.get_ydata()
    assert len(values) == 7 * 20 and 7 < values.argmax() <= 14
    assert mmcv.imread('lr.png').std() > 10
    assert [path.name for path in tmp_path.iterdir()] == ['lr.png']
    with pytest.raises(SystemExit, match='gone.py: No such file'):
        draw('gone.py', *SIZE)
    with pytest.raises(SystemExit, match='there is no .*check the path'):
        draw(DECAY, '--not-show')


def test_analyze_logs(run, tmp_path):
    train_with_hooks(tmp_path)
    (log,) = tmp_path.glob('work/*/vis_data/scalars.json')
    tool = 'analysis_tools/analyze_logs.py'
    assert 'average iter time' in run(tool, 'cal_train_time', log)
    run(tool, 'plot_curve', log, '--keys', 'loss', '--out', 'loss.png')
    assert mmcv.imread('loss.png').std() > 10


def test_print_config(run):
    assert "type='mmclca.EViT'" in run('misc/print_config.py', CONFIG)


def test_get_flops(run):
    said = run('analysis_tools/get_flops.py', CONFIG, '--shape', 64)
    assert 'backbone.layers.11' in said and 'Input shape' in said


class BaseCAM:
    """In place of grad-cam's, on which the tool depends.

    It finds the mean of the tokens that leave a layer.
    """

    activations_and_grads = MagicMock()

    def __init__(self, model, target_layers):
        self.model, self.target_layers = model, target_layers

    def __call__(self, images, targets, **smooth):
        kept = []
        (layer,) = self.target_layers
        layer.register_forward_hook(lambda *given: kept.append(given[-1]))
        self.model(images)
        _, _, picture_of = self.activations_and_grads
        return picture_of(kept[0]).mean(1).detach().numpy()


class GradCAM(BaseCAM):
    """As the tool finds it."""


@pytest.fixture
def grad_cam(monkeypatch):
    package = 'pytorch_grad_cam'
    modules = {
        package: dict(
            GradCAMPlusPlus=GradCAM, base_cam=SimpleNamespace(BaseCAM=BaseCAM)
        ),
        f'{package}.activations_and_gradients': dict(
            ActivationsAndGradients=lambda *given: given
        ),
        f'{package}.utils.image': dict(
            show_cam_on_image=lambda image, found, use_rgb: 255 * found
        ),
    }
    for name, content in modules.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**content))


def test_vis_cam(run, grad_cam, tmp_path):
    """Of all tokens: where some are gone, the rest is no square."""
    write_tiny(tmp_path, reducer=None, reduce_at=(), cache=None)
    files = ('data/ash/0.png', 'tiny.py', 'tiny.pth')
    options = ('--vit-like', '--save-path', 'cam.png')
    said = run('visualization/vis_cam.py', *files, *options)
    assert 'backbone.layers.2.ln1' in said
    assert mmcv.imread('cam.png').shape == (4, 4, 3)
