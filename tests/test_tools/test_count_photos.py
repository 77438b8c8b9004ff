# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photos per class by count-photos."""

import sys

import pytest
from tiny_photos import write_photos
from tiny_run import CLASSES, exit_code

from mmclca.cli.main import main


@pytest.fixture
def count(monkeypatch):
    """Count the photos in a folder; return the exit code."""

    def count(folder):
        monkeypatch.setattr(sys, 'argv', ['mmclca', 'count-photos', folder])
        return exit_code(main)

    return count


def test_count_photos_prints_photos_per_class(count, tmp_path, capsys):
    photos = write_photos(tmp_path, per_class=2)
    next((photos / CLASSES[0]).iterdir()).unlink()
    assert not count(str(photos))
    *rows, total = capsys.readouterr().out.splitlines()
    counts = {name: int(number) for number, name in map(str.split, rows)}
    assert counts == dict.fromkeys(CLASSES, 2) | {CLASSES[0]: 1}
    assert total.split() == ['7', 'photos,', '4', 'classes']


def test_count_photos_refuses_a_missing_folder(count, tmp_path, capsys):
    assert count(str(tmp_path / 'nothing')) == 2
    assert 'nothing' in capsys.readouterr().err
