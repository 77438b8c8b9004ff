# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Lists that are written all or not at all."""

import errno
import os

import pytest

from mmclca.datasets.preparation.lists import (
    list_lines,
    read_list,
    write_lists,
)


def test_lines_are_read_as_written(tmp_path):
    images = [(tmp_path / 'images/a b.png', 1), (tmp_path / 'c.png', 0)]
    lines = list_lines(images, tmp_path / 'lists')
    assert lines == ['../images/a b.png 1', '../c.png 0']
    write_lists({tmp_path / 'lists/train.txt': lines})
    found = read_list(tmp_path / 'lists', 'train.txt', num_classes=2)
    assert [os.path.normpath(path) for path, _ in found] == [
        str(path) for path, _ in images
    ]
    assert [label for _, label in found] == [1, 0]
    with pytest.raises(ValueError, match='0 to 0, but there are:\n  1: ../im'):
        read_list(tmp_path / 'lists', 'train.txt', num_classes=1)


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
