# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from itertools import product

import pytest

from mmclca.datasets.photographs import read_photographs

TREES = ['ash', 'elm', 'oak']


def make(root, *levels):
    """Empty files, one per combination of folders."""
    for folders in product(*levels):
        path = root.joinpath(*folders) / '0.jpg'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


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
    ],
)
def test_read_folder_reads_splits_if_classes_are_same(tmp_path, levels):
    found = read_photographs(make(tmp_path, *levels))
    assert found.classes == TREES
    assert sorted(found.splits) == ['test'] * 3 + ['train'] * 3
    assert 'train' in found.notes[0]


def test_read_folder_reads_splits_in_classes(tmp_path):
    found = read_photographs(make(tmp_path, TREES, ['train', 'val']))
    assert found.classes == TREES and found.splits == ['train', 'val'] * 3


@pytest.mark.parametrize('inner', [TREES, ['.']])
@pytest.mark.parametrize('name', ['unlabelled', 'Unlabeled images'])
def test_read_folder_leaves_out_unlabeled_images(tmp_path, name, inner):
    make(tmp_path, ['train'], TREES)
    found = read_photographs(make(tmp_path, [name], inner))
    assert found.classes == TREES and len(found) == 3
    assert len(found.left_out) == len(inner)


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
def test_read_folder_refuses_variants(tmp_path, outer):
    with pytest.raises(ValueError, match='variants') as error:
        read_photographs(make(tmp_path, outer, TREES))
    text = str(error.value)
    assert '\n' not in text and '--labels' in text
    assert all(name in text for name in (*outer[:2], *TREES))


def test_read_folder_refuses_images_and_masks(tmp_path):
    for name in ('images/1', 'images/2', 'masks/1', 'masks/2'):
        make(tmp_path, [name])
        (tmp_path / name / '0.jpg').rename(tmp_path / f'{name}.jpg')
    with pytest.raises(ValueError, match='variants'):
        read_photographs(tmp_path)


@pytest.mark.parametrize(
    'inner', [['2022', '2023'], ['plant 1', 'plant 2'], ['front', 'back']]
)
def test_read_folder_keeps_classes_if_parts_are_same(tmp_path, inner):
    found = read_photographs(make(tmp_path, TREES, inner))
    assert found.classes == TREES and found.notes == []
    assert found.splits == [''] * 6


@pytest.mark.parametrize('outer', [['test', 'control'], ['raw ham', 'ham']])
def test_read_folder_keeps_classes_if_names_are_like_variants(tmp_path, outer):
    found = read_photographs(make(tmp_path, outer, ['day 1', 'day 2']))
    assert found.classes == sorted(outer) and found.notes == []


def test_read_folder_names_both_readings_if_unclear(tmp_path):
    found = read_photographs(make(tmp_path, ['north', 'south'], TREES))
    assert found.classes == ['north', 'south']
    assert 'splits' in found.notes[0] and 'elm' in found.notes[0]


def test_read_folder_reads_splits_if_each_has_a_folder_around(tmp_path):
    make(tmp_path, ['seg_train'], ['seg_train'], TREES)
    make(tmp_path, ['seg_test'], ['seg_test'], TREES)
    found = read_photographs(make(tmp_path, ['seg_pred'], ['seg_pred']))
    assert found.classes == TREES and len(found.left_out) == 1
    assert sorted({*found.splits}) == ['test', 'train']


@pytest.mark.parametrize(
    'name, inner', [('test', TREES), ('unlabelled', ['.']), ('val', ['ash'])]
)
def test_read_folder_refuses_a_split_next_to_classes(tmp_path, name, inner):
    make(tmp_path, TREES)
    with pytest.raises(ValueError, match=name):
        read_photographs(make(tmp_path, [name], inner))


def test_read_folder_keeps_classes_whose_photos_are_numbered(tmp_path):
    for name in ('V1', 'V2', 'V3'):
        make(tmp_path, [name])
        for number in (1, 2):
            (tmp_path / name / f'{number}.jpg').touch()
    assert read_photographs(tmp_path).classes == ['V1', 'V2', 'V3']


def test_read_folder_keeps_a_class_that_is_named_like_a_split(tmp_path):
    found = read_photographs(
        make(tmp_path, ['oak', 'val-de-loire'], ['leaf', 'bark'])
    )
    assert found.classes == ['oak', 'val-de-loire']
