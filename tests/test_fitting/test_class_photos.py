# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""One training photo per class."""

import pytest

from mmclca.checkpoints.gate.photo_table import PhotoRow, compute_sha256
from mmclca.checkpoints.model_folder import ModelFolder
from mmclca.errors import Error
from mmclca.fitting import class_photos
from mmclca.fitting.class_photos import find_class_photos


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Rows of two classes, in the order of their probability."""
    rows = []
    for i, probability in enumerate([None, 0.2, 0.7, 0.9]):
        path = tmp_path / f'{i}.jpg'
        path.write_bytes(bytes([i]))
        digest = compute_sha256(str(path))
        row = PhotoRow(
            str(path),
            'ab'[i % 2],
            label_probability=probability,
            sha256=digest,
        )
        rows.append(row)
    monkeypatch.setattr(class_photos, 'is_fitted', lambda _: True)
    monkeypatch.setattr(ModelFolder, 'open', ModelFolder)
    monkeypatch.setattr(ModelFolder, 'read_used_photos', lambda _: rows)
    return rows


def test_most_probable_photo_shows_its_class(rows, tmp_path):
    paths = find_class_photos(tmp_path, ['b', 'a'])
    assert [path.name for path in paths] == ['3.jpg', '2.jpg']


@pytest.mark.parametrize('change', ['replaced', 'removed'])
def test_other_photo_shows_a_class_if_the_best_is(change, rows, tmp_path):
    if change == 'replaced':
        (tmp_path / '3.jpg').write_text('a private file')
    else:
        (tmp_path / '3.jpg').unlink()
    paths = find_class_photos(tmp_path, ['a', 'b'])
    assert [path.name for path in paths] == ['2.jpg', '1.jpg']


def test_class_is_named_if_its_photos_are_gone(rows, tmp_path):
    for i in (0, 2):
        (tmp_path / f'{i}.jpg').unlink()
    with pytest.raises(Error, match=r'no training photo of 1 .*\(a\)'):
        find_class_photos(tmp_path, ['a', 'b'])


def test_checkpoint_is_refused_if_it_has_no_photos(tmp_path):
    with pytest.raises(Error, match='`photos_in_app` needs a model folder'):
        find_class_photos(tmp_path / 'model.pth', ['a'])
