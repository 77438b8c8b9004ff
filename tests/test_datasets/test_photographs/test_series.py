# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from mmclca.datasets.photographs import LabeledImages, find_series


@pytest.fixture(scope='module')
def count(tmp_path_factory):
    """Function to count near-duplicates among four photos and given files,
    and groups after near-duplicates were joined."""
    folder = tmp_path_factory.mktemp('series')
    rng = np.random.default_rng(0)
    for i in range(4):
        small = rng.integers(0, 255, (40, 30, 3), np.uint8)
        image = Image.fromarray(small).resize((300, 400), Image.BICUBIC)
        image.save(folder / f'{i}.png')
    with Image.open(folder / '0.png') as image:
        image.crop((6, 8, 300, 400)).save(folder / 'crop.jpg', quality=90)
        image.save(folder / 'again.jpg', quality=60)
        image.rotate(5).resize((150, 200)).save(folder / 'turned.png')
    Image.new('RGB', (300, 400), 'green').save(folder / 'plain.png')

    def count(*files, groups=None):
        names = ['ash', 'ash', 'elm', 'elm'] + ['ash'] * len(files)
        files = [*(f'{i}.png' for i in range(4)), *files]
        paths = [str(folder / file) for file in files]
        found = LabeledImages.named(paths, names, '.')
        generator = torch.Generator().manual_seed(0)
        features = torch.randn(len(files), 8, generator=generator)
        counts, joined = find_series(replace(found, groups=groups), features)
        number = len({*joined.values()})
        return counts, number

    return count


@pytest.mark.parametrize('file', ['crop.jpg', 'again.jpg', 'turned.png'])
def test_modified_copies_are_near_duplicates(count, file):
    assert count(file) == (dict(ash=2), 4)


def test_other_photos_and_groups_are_not_near_duplicates(count):
    assert count('plain.png', 'plain.png') == ({}, 5)  # without corners
    assert count('crop.jpg', groups=['a', 'b', 'c', 'd', 'a']) == ({}, 4)


def test_near_duplicates_join_their_groups(count):
    """The crop joins two groups, of which one has a third photo."""
    groups = ['a', 'b', 'c', 'c', 'b']
    assert count('crop.jpg', groups=groups) == (dict(ash=2), 2)
    assert count('crop.jpg', 'turned.png') == (dict(ash=3), 4)
