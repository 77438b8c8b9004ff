# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import errno
import os
from dataclasses import replace

import pytest
from mmengine import list_from_file
from mmengine.registry import init_default_scope
from mmpretrain.datasets import CustomDataset

from mmclca.datasets.photos import LabeledImages, read_photos
from mmclca.datasets.photos.lists import (
    format_lists,
    read_lists,
    split_sizes,
    write_lists,
)


def files_of(photos, folder):
    """Write lists of absolute paths, like fit; return the files by name."""
    lists = format_lists(photos, folder, relative=False)
    write_lists(lists, force=True)
    return {file.stem: file for file in lists}


def test_mmpretrain_reads_written_lists(paint, tmp_path):
    photos = tmp_path / 'my photos'
    for name in ('train/rose/ a 1', 'train/tulip/b', 'val/tulip/c 0'):
        paint(f'my photos/{name}.png', 0)
    images = read_photos(photos)
    files = files_of(images, tmp_path / 'new/lists')
    assert list(files) == ['classes', 'train', 'val']
    assert list_from_file(files['classes']) == ['rose', 'tulip']
    init_default_scope('mmpretrain')
    read = []
    for name in ('train', 'val'):
        data = CustomDataset(
            ann_file=str(files[name]),
            metainfo=dict(classes=str(files['classes'])),
            pipeline=[dict(type='mmclca.LoadPhoto')],
            serialize_data=False,
        )
        assert data.CLASSES == ['rose', 'tulip']
        read += [(x['img_path'], x['gt_label'], x['img'].shape) for x in data]
    shape = (30, 40, 3)
    pairs = zip(images.paths, images.labels, strict=True)
    assert read == [(path, label, shape) for path, label in pairs]


def test_photos_without_a_split_are_listed_for_training(make, tmp_path):
    images = read_photos(make('rose/a.png', 'tulip/b.png'))
    files = files_of(images, tmp_path)
    assert list(files) == ['classes', 'train']
    lines = [f'{tmp_path}/rose/a.png 0', f'{tmp_path}/tulip/b.png 1']
    assert list_from_file(files['train']) == lines


def test_read_lists_inverts_write_lists(tmp_path):
    paths = [str(tmp_path / name) for name in ('images/a b.png', 'c.png')]
    images = LabeledImages.from_names(paths, ['elm', 'ash'], 'here')
    images = replace(images, splits=['train', 'val'])
    folder = tmp_path / 'lists'
    lists = format_lists(images, folder, ['train'])
    assert lists[folder / 'train.txt'] == ['../images/a b.png 1']
    write_lists(lists)
    names = dict(train='train.txt', val='val.txt')
    stored = read_lists(folder, names)
    assert [*map(os.path.normpath, stored.paths)] == images.paths
    assert (stored.labels, stored.splits) == (images.labels, images.splits)
    (folder / 'classes.txt').write_text('ash\n')
    with pytest.raises(ValueError, match='from 0 to 0'):
        read_lists(folder, names)


def test_old_lists_are_deleted_after_new_ones_are_written(
    tmp_path, monkeypatch
):
    train, test = tmp_path / 'train.txt', tmp_path / 'test.txt'
    write_lists({train: ['a 0'], test: ['b 0']})
    with pytest.raises(ValueError, match='train.txt, .*test.txt: other lists'):
        write_lists({train: ['b 0']}, 'other lists', old=[train, test])

    def full(*_):
        raise OSError(errno.ENOSPC, 'No space left on device')

    with monkeypatch.context() as disk, pytest.raises(OSError, match='space'):
        disk.setattr(os, 'replace', full)
        write_lists({train: ['b 0']}, old=[train, test], force=True)
    assert train.read_text() == 'a 0\n' and test.read_text() == 'b 0\n'
    write_lists({train: ['b 0']}, old=[train, test], force=True)
    assert train.read_text() == 'b 0\n' and not test.exists()


@pytest.mark.parametrize(
    'count, fractions, sizes',
    [
        (100, (0.2, 0.2), (60, 20, 20)),
        (6, (0.17, 0.5), (2, 1, 3)),
        (10, (0.2,), (8, 2, 0)),
        (2, (0.01,), (1, 1, 0)),
        (1, (0.5,), (1, 0, 0)),
        (0, (0.5, 0.2), (0, 0, 0)),
        (2, (0.2, 0.2), (1, 1, 0)),
        (3, (0.8, 0.1), (1, 1, 1)),
    ],
)
def test_split_sizes(count, fractions, sizes):
    assert split_sizes(count, *fractions) == sizes
