# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The tool that draws what attention pooling reads."""

import mmcv
import numpy as np
import pytest
from small_models import PATCH_CONVNET
from tiny_model import write_tiny
from tiny_run import ROOT, run_tool

TOOL = ROOT / 'tools/visualization/vis_pooling.py'


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Models with one query a class and with one, and images."""
    folder = tmp_path_factory.mktemp('pooling')
    each = dict(PATCH_CONVNET, multiclass=4)
    write_tiny(folder / 'each', 'mmclca.PerClassHead', **each)
    write_tiny(folder / 'one', **PATCH_CONVNET)
    return folder


@pytest.fixture
def draw(files, monkeypatch):
    """Runs the tool on an image in this process; returns the picture."""

    def draw(checkpoint, *arguments):
        image, out = files / 'one/data/elm/0.png', files / 'out.png'
        arguments = (image, files / checkpoint, *arguments)
        options = ('--device', 'cpu', '--out', out)
        run_tool(monkeypatch, TOOL, *arguments, *options)
        return mmcv.imread(out)

    return draw


def test_classes_by_name_and_label(draw):
    best = draw('each/tiny.pth')
    named = draw('each/tiny.pth', '--classes', 'oak', 'elm', 'ash')
    labelled = draw('each/tiny.pth', '--classes', '3', '2', '0')
    assert np.array_equal(named, labelled) and named.std() > 10
    assert best.shape[1] == pytest.approx(named.shape[1], rel=0.1)


@pytest.mark.parametrize(
    'checkpoint, classes, message',
    [
        ('each/tiny.pth', 'oka', r"--classes: no 'oka' \(do you mean oak"),
        ('each/tiny.pth', '4', "--classes: no '4'.* by their labels, 0 to 3"),
        (
            'one/tiny.pth',
            'oak',
            'one query for all classes: leave --classes out',
        ),
    ],
)
def test_bad_input_ends_in_a_line(draw, checkpoint, classes, message):
    with pytest.raises(SystemExit, match=message) as error:
        draw(checkpoint, '--classes', classes)
    assert '\n' not in str(error.value)
