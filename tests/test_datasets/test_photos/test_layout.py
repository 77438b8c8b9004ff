# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from itertools import product

import pytest

from mmclca.datasets.photos import read_photos

TREES = ['ash', 'elm', 'oak']


@pytest.fixture
def grid(make):
    """Function to create empty files in each combination of folders."""

    def grid(*levels, names='0'):
        names = [f'{name}.jpg' for name in names]
        return make(*map('/'.join, product(*levels, names)))

    return grid


@pytest.mark.parametrize(
    'levels',
    [
        (['train_images', 'test_images'], TREES),
        (['Training Set', 'Testing Set'], TREES),
        (['01-TRAIN', '02-TEST'], TREES),
        (['trees_train2024', 'trees_test2024'], TREES),
        (['训练集', '测试集'], TREES),
        (['data'], ['train', 'test'], TREES),
        (['train', 'test'], ['images'], TREES),
        (TREES, ['train', 'test']),
    ],
)
def test_splits_are_recognized_if_classes_are_the_same(grid, levels):
    photos = read_photos(grid(*levels))
    assert photos.classes == TREES
    assert sorted(photos.splits) == ['test'] * 3 + ['train'] * 3
    assert 'train' in str(photos.notes[0])


def test_splits_are_recognized_if_each_has_a_parent_folder(grid):
    grid(['seg_train'], ['seg_train'], TREES)
    grid(['seg_test'], ['seg_test'], TREES)
    photos = read_photos(grid(['seg_pred'], ['seg_pred']))
    assert photos.classes == TREES and len(photos.unused) == 1
    assert sorted({*photos.splits}) == ['test', 'train']


@pytest.mark.parametrize(
    'name, inner', [('unlabelled', TREES), ('Unlabeled images', ['.'])]
)
def test_unlabeled_images_are_left_out(grid, name, inner):
    grid(['train'], TREES)
    photos = read_photos(grid([name], inner))
    assert photos.classes == TREES and len(photos) == 3
    assert len(photos.unused) == len(inner)


@pytest.mark.parametrize(
    'outer',
    [
        ['valid', 'test'],
        ['color', 'grayscale', 'segmented'],
        ['images', 'labels'],
        ['images', 'test'],
        ['fold1', 'fold2'],
        ['Session A', 'Session B'],
        ['original', 'augmented_images'],
    ],
)
def test_variants_are_refused(grid, outer):
    with pytest.raises(ValueError, match='variants') as error:
        read_photos(grid(outer, TREES))
    message = str(error.value)
    assert '\n' not in message and '`labels`' in message
    assert all(name in message for name in (*outer[:2], *TREES))


def test_images_and_masks_are_refused(grid):
    with pytest.raises(ValueError, match='variants'):
        read_photos(grid(['images', 'masks'], names='12'))


@pytest.mark.parametrize(
    'name, inner', [('test', TREES), ('unlabelled', ['.']), ('val', ['ash'])]
)
def test_split_next_to_classes_is_refused(grid, name, inner):
    grid(TREES)
    with pytest.raises(ValueError, match=name):
        read_photos(grid([name], inner))


@pytest.mark.parametrize(
    'outer, inner',
    [
        (TREES, ['2022', '2023']),
        (TREES, ['plant 1', 'plant 2']),
        (TREES, ['front', 'back']),
        (['control', 'test'], ['day 1', 'day 2']),
        (['ham', 'raw ham'], ['day 1', 'day 2']),
        (['oak', 'val-de-loire'], ['leaf', 'bark']),
        (['V1', 'V2', 'V3'], ['.']),
    ],
)
def test_classes_are_kept_if_they_resemble_splits_or_variants(
    grid, outer, inner
):
    photos = read_photos(grid(outer, inner, names='012'))
    assert photos.classes == outer and {*photos.splits} == {''}


def test_note_names_both_readings_if_ambiguous(grid):
    photos = read_photos(grid(['north', 'south'], TREES))
    assert photos.classes == ['north', 'south']
    (note,) = map(str, photos.notes)
    assert 'splits' in note and 'elm' in note
