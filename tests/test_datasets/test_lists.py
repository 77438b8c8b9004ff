# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Lists that are written all or not at all."""

import errno
import os

import pytest

from mmclca.datasets.photographs import LabeledImages
from mmclca.datasets.photographs.lists import (
    lines_of_lists,
    read_lists,
    write_lists,
)


def test_lists_are_read_as_written(tmp_path):
    images = LabeledImages(
        [str(tmp_path / 'images/a b.png'), str(tmp_path / 'c.png')],
        [1, 0],
        ['ash', 'elm'],
        groups=None,
        splits=['train', 'val'],
        source='here',
    )
    folder = tmp_path / 'lists'
    lists = lines_of_lists(images, folder, ['train'])
    assert lists[folder / 'train.txt'] == ['../images/a b.png 1']
    write_lists(lists)
    names = dict(train='train.txt', val='val.txt')
    found = read_lists(folder, names)
    assert [*map(os.path.normpath, found.paths)] == images.paths
    assert (found.labels, found.splits) == (images.labels, images.splits)
    (folder / 'classes.txt').write_text('ash\n')
    with pytest.raises(ValueError, match='from 0 to 0'):
        read_lists(folder, names)


def test_old_lists_go_once_the_new_ones_are_there(tmp_path, monkeypatch):
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
