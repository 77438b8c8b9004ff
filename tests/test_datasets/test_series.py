# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Crops and copies of a photograph are a series, other leaves are not."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from mmclca.datasets.photographs import LabeledImages, find_series


@pytest.fixture
def photographs(tmp_path):
    """Two photographs of each of two classes, and changed ones of ash."""
    rng = np.random.default_rng(0)
    names = []
    for i in range(4):
        small = rng.integers(0, 255, (40, 30, 3), np.uint8)
        image = Image.fromarray(small).resize((300, 400), Image.BICUBIC)
        image.save(tmp_path / f'{i}.png')
        names.append(('ash', 'elm')[i // 2])
    with Image.open(tmp_path / '0.png') as image:
        image.crop((6, 8, 300, 400)).save(tmp_path / 'crop.jpg', quality=90)
        image.save(tmp_path / 'again.jpg', quality=60)
        image.rotate(5).resize((150, 200)).save(tmp_path / 'turned.png')

    def photographs(*files, groups=None):
        all_names = names + ['ash'] * len(files)
        files = [*(f'{i}.png' for i in range(4)), *files]
        paths = [str(tmp_path / file) for file in files]
        found = LabeledImages.named(paths, all_names, '.')
        return replace(found, groups=groups)

    return photographs


def features(number):
    return torch.randn(number, 8, generator=torch.Generator().manual_seed(0))


def test_other_things_are_no_series(photographs):
    assert find_series(photographs(), features(4)) == {}


@pytest.mark.parametrize('file', ['crop.jpg', 'again.jpg', 'turned.png'])
def test_what_is_one_photograph_changed(photographs, file):
    found = photographs(file)
    assert find_series(found, features(5)) == dict(ash=2)


def test_a_group_is_known_to_belong_together(photographs):
    found = photographs('crop.jpg', groups=['a', 'b', 'c', 'd', 'a'])
    assert find_series(found, features(5)) == {}
