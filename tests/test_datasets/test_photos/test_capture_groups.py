# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Groups of photos by day or folder."""

from dataclasses import replace

import pytest

from mmclca.datasets.photos import LabeledImages, group_by_capture
from mmclca.datasets.photos.captures import Capture

CAPTURES = {
    'a/n/0.jpg': Capture('2023-07-14', '', 'n'),
    'a/s/1.jpg': Capture('2023-07-15', '', 's'),
    'b/n/2.jpg': Capture('2023-07-14', '', 'n'),
    'b/s/3.jpg': Capture('2023-07-14', '', 's'),
}


@pytest.fixture
def captured():
    """Photos on two days and in two folders."""
    photos = LabeledImages.from_names(
        [*CAPTURES], ['a', 'a', 'b', 'b'], 'photos'
    )
    return replace(photos, captures=CAPTURES)


@pytest.mark.parametrize(
    'kind, expected', [('day', [14, 15, 14, 14]), ('folder', [*'nsns'])]
)
def test_photos_are_grouped_by_day_or_folder(captured, kind, expected):
    groups = group_by_capture(captured, kind).groups
    assert [str(x) for x in expected] == [x[-2:].strip('-') for x in groups]


def test_folders_of_plants_are_numbered_within_each_class(captured):
    captures = {
        path: Capture('', '', f'plant{i % 2}')
        for i, path in enumerate(captured.paths)
    }
    grouped = group_by_capture(replace(captured, captures=captures), 'folder')
    assert len({*grouped.groups}) == 4


@pytest.mark.parametrize('kind', ['day', 'folder'])
def test_unknown_or_equal_groups_are_refused(captured, kind):
    unknown = captured.captures | {'a/n/0.jpg': Capture()}
    with pytest.raises(ValueError, match='1 of 4 photos'):
        group_by_capture(replace(captured, captures=unknown), kind)
    same = dict.fromkeys(captured.paths, Capture('2023-07-14', '', 'n'))
    with pytest.raises(ValueError, match='at least two'):
        group_by_capture(replace(captured, captures=same), kind)
