# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Sets as small, as large and as uneven as people have them."""

import numpy as np
import pytest
from PIL import Image

from mmclca.datasets.photographs import check_photographs, read_photographs


@pytest.fixture
def check(tmp_path):
    """Writes tiny pictures, as many of each class as given, and checks."""
    noise = np.random.default_rng(0)

    def checked(counts):
        for name, count in counts.items():
            (tmp_path / name).mkdir()
            for number in range(count):
                image = noise.integers(0, 255, (8, 8, 3)).astype(np.uint8)
                Image.fromarray(image).save(tmp_path / name / f'{number}.png')
        return check_photographs(read_photographs(tmp_path))

    return checked


def test_300_against_3_and_1(check):
    counts = dict(ash=300, oak=3, yew=1)
    checked = check(counts)
    assert checked.photographs.counts() == counts
    (line,) = checked.lines()
    assert checked.single == ['yew'] and line.endswith('(yew)')


def test_many_classes_of_one_image(check):
    names = [f'class {i:04d}' for i in range(400)]
    checked = check(dict.fromkeys(names, 1))
    assert checked.photographs.classes == checked.single == names
    assert len(checked.photographs) == 400
    (line,) = checked.lines()  # and short
    assert line.endswith('(class 0000; class 0001; class 0002 and 397 more)')


def test_a_group_may_hold_a_whole_class(check, tmp_path):
    check(dict(ash=3, oak=3))
    found = read_photographs(tmp_path, groups='^ash|[0-9]')
    assert check_photographs(found).photographs.groups == (
        ['ash'] * 3 + ['0', '1', '2']
    )
