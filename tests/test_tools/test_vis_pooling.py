# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The tool that draws what attention pooling reads."""

import mmcv
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmpretrain import get_model
from tiny_run import CLASSES, ROOT, run_tool, write_run

TOOL = ROOT / 'tools/visualization/vis_pooling.py'
ARCH = dict(embed_dims=24, num_layers=1)


def write(folder, name, multiclass, head):
    """A checkpoint with its config, every parameter moved."""
    cfg = Config.fromfile(folder / 'tiny.py')
    cfg.model.backbone = dict(
        type='mmclca.PatchConvNet', arch=ARCH, img_size=32
    )
    cfg.model.backbone.multiclass = multiclass
    cfg.model.head.type = head
    model = get_model(cfg, pretrained=False)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=CLASSES))
    torch.save(dict(state_dict=model.state_dict(), meta=meta), folder / name)


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp('pooling')
    write_run(folder)
    write(folder, 'each.pth', 4, 'mmclca.PerClassHead')
    write(folder, 'one.pth', False, 'LinearClsHead')
    return folder


@pytest.fixture
def draw(files, monkeypatch):
    """Runs the tool on an image in this process; returns the picture."""

    def draw(checkpoint, *arguments):
        image, out = files / 'data/elm/0.png', files / 'out.png'
        arguments = (image, files / checkpoint, *arguments)
        options = ('--device', 'cpu', '--out', out)
        run_tool(monkeypatch, TOOL, *arguments, *options)
        return mmcv.imread(out)

    return draw


def test_classes_by_name_and_label(draw):
    best = draw('each.pth')
    named = draw('each.pth', '--classes', 'oak', 'elm', 'ash')
    labelled = draw('each.pth', '--classes', '3', '2', '0')
    assert np.array_equal(named, labelled) and named.std() > 10
    assert best.shape[1] == pytest.approx(named.shape[1], rel=0.1)


def test_one_query_and_drawn_leaves(draw):
    picture = draw('one.pth')
    both = draw('one.pth', '--leaves', '1')
    assert both.shape[0] > 1.4 * picture.shape[0]


@pytest.mark.parametrize(
    'checkpoint, classes, message',
    [
        ('each.pth', 'oka', r"--classes: no 'oka' \(do you mean oak"),
        ('each.pth', '4', "--classes: no '4'.* by their labels, 0 to 3"),
        ('one.pth', 'oak', 'one query for all classes: leave --classes out'),
    ],
)
def test_bad_input_ends_in_a_line(draw, checkpoint, classes, message):
    with pytest.raises(SystemExit, match=message) as error:
        draw(checkpoint, '--classes', classes)
    assert '\n' not in str(error.value)
