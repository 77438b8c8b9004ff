# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load parallel branches in each layout; logits must equal timm.

DeiT releases have other names under ``model``. The stem, missing in timm, is
compared with the papers' public code in test_family_parity.py.
"""

import re

import pytest
import torch
from foreign_models import images, ours, theirs, write

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.load import load


def numbered(match):
    """Convert the timm name of a branch to a DeiT release."""
    kind, branch, part = match.groups()
    half, end = ('1', '2')[kind == 'ffns'], branch.lstrip('0')
    if part == 'ls.gamma':
        return f'gamma_{half}_{end}'.rstrip('_')
    return f'{part}{half if part == "norm" else ""}{end}'


def release(weights):
    part = r'(attns|ffns)\.(\d+)\.(norm|attn|mlp|ls\.gamma)'
    renamed = {re.sub(part, numbered, k): v for k, v in weights.items()}
    return {'model': renamed}


LAYOUTS = {  # style, file name, content
    'timm': ('parallel', 'w.safetensors', dict),
    'release': ('parallel', 'w.pth', release),
    'deit3-timm': ('parallel_deit3', 'w.safetensors', dict),
    'deit3-release': ('parallel_deit3', 'w.pth', release),
}


@pytest.mark.usefixtures('report_is_golden')
@pytest.mark.parametrize('layout', LAYOUTS)
def test_logits_equal_timm(layout, tmp_path):
    style, name, contents = LAYOUTS[layout]
    size = 48
    there = theirs(style)
    path = write(tmp_path / name, contents(there.state_dict()))
    there.set_input_size(size)
    here = ours(style, img_size=size)
    load(here, path)
    x = images(size)
    with torch.no_grad():
        assert (here(x) - there.double()(x)).abs().max() < 1e-9


def test_matching_positions_are_not_reported_as_resized(tmp_path):
    """DeiT III has no CLS position."""
    path = write(tmp_path / 'w.pth', release(theirs('deit3').state_dict()))
    assert not load(ours('deit3', with_cls_pos=False), path).resized
    (line,) = load(ours('deit3'), path).resized
    assert line.endswith('without CLS to 4 x 4')


@pytest.mark.parametrize('contents', [dict, release])
def test_twelve_branches_are_loaded(contents, tmp_path):
    """Twelve branches have numbers with two digits."""
    here = ours(branches=12, depth=1)
    weights = {}
    for name, value in theirs('parallel', depth=1).state_dict().items():
        if '.attns.' not in name and '.ffns.' not in name:
            weights[name] = value
        elif re.search(r'ns\.0\.', name):
            for b in range(12):
                new = re.sub(r'ns\.0\.', f'ns.{b}.', name)
                weights[new] = torch.full_like(value, b)
    path = write(tmp_path / 'w.pth', contents(weights))
    load(here, path)
    for b, branch in enumerate(here.backbone.layers[0].branches):
        assert all((p == b).all() for p in branch.parameters())


@pytest.mark.parametrize(
    'style, own, reason',
    [
        ('parallel', dict(branches=2), r'branches\.2\.\S+ is'),
        ('parallel', {}, r'layers\.0\.ln1\.weight is missing'),
        ('plain', dict(branches=2), r'branches\.0\.\S+ is missing'),
    ],
)
def test_branches_are_refused_if_number_differs(style, own, reason, tmp_path):
    path = write(tmp_path / 'w.pth', theirs(style).state_dict())
    with pytest.raises(CheckpointError, match=reason):
        load(ours(**own), path, strict=False)
