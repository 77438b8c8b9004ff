# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from mmclca.datasets.near_duplicates import find_near_duplicates, join_groups
from mmclca.datasets.photos import LabeledImages


@pytest.fixture(scope='module')
def count(tmp_path_factory):
    """Function to count pairs of near-duplicates within a class and in two
    classes among four photos and given files, and the joined groups."""
    folder = tmp_path_factory.mktemp('near_duplicates')
    rng = np.random.default_rng(0)
    for i in range(4):
        small = rng.integers(0, 255, (40, 30, 3), np.uint8)
        image = Image.fromarray(small).resize((300, 400), Image.BICUBIC)
        image.save(folder / f'{i}.png')
    with Image.open(folder / '0.png') as image:
        image.crop((6, 8, 300, 400)).save(folder / 'crop.jpg', quality=90)
        image.save(folder / 'again.jpg', quality=60)
        image.rotate(5).resize((150, 200)).save(folder / 'turned.png')
        exif = Image.Exif()
        exif[274] = 6  # lies on its side, shown upright
        lying = image.transpose(Image.Transpose.ROTATE_90)
        lying.save(folder / 'lying.jpg', exif=exif)
    Image.new('RGB', (300, 400), 'green').save(folder / 'plain.png')

    def count(*files, groups=None, name='ash'):
        names = ['ash', 'ash', 'elm', 'elm'] + [name] * len(files)
        files = [*(f'{i}.png' for i in range(4)), *files]
        paths = [str(folder / file) for file in files]
        found = replace(
            LabeledImages.from_names(paths, names, '.'), groups=groups
        )
        generator = torch.Generator().manual_seed(0)
        features = torch.randn(len(files), 8, generator=generator)
        pairs = find_near_duplicates(found, features)
        name_of = dict(zip(paths, names, strict=True))
        same = sum(name_of[a] == name_of[b] for a, b in pairs)
        return same, len(pairs) - same, len({*join_groups(found, pairs)})

    return count


@pytest.mark.parametrize(
    'file', ['crop.jpg', 'again.jpg', 'turned.png', 'lying.jpg']
)
def test_modified_copies_are_near_duplicates(count, file):
    assert count(file) == (1, 0, 4)
    assert count(file, name='elm') == (0, 1, 4)


def test_other_photos_and_groups_are_not_near_duplicates(count):
    assert count('plain.png', 'plain.png') == (0, 0, 5)  # without corners
    groups = ['a', 'b', 'c', 'd', 'a']
    assert count('crop.jpg', groups=groups) == (0, 0, 4)
    assert count('crop.jpg', groups=groups, name='elm') == (0, 0, 4)


def test_near_duplicates_join_their_groups(count):
    """The crop joins two groups, of which one has a third photo."""
    groups = ['a', 'b', 'c', 'c', 'b']
    assert count('crop.jpg', groups=groups) == (1, 0, 2)
    assert count('crop.jpg', 'turned.png')[2] == 4
