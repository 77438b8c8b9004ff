# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classification of uploaded photos."""

import csv
import shutil

import pytest
from tiny_photos import write_photos
from tiny_run import CLASSES

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

from mmclca.page.batch import BatchTab
from mmclca.page.identify import IdentifyTab
from mmclca.page.prediction import BATCH


def pack(tmp_path, folder, name='new day'):
    """Upload a ZIP archive with a folder."""
    path = shutil.make_archive(tmp_path / 'uploads' / name, 'zip', folder)
    return [dict(path=path)]


def test_photos_are_classified_into_tables_and_deleted(
    recorded_model, empty_uploads, tmp_path, problems
):
    photos = write_photos(tmp_path, per_class=BATCH // 4)
    (photos / 'ash/damaged.jpg').write_bytes(b'no photo')
    tab = BatchTab(IdentifyTab(empty_uploads, recorded_model))
    progress, view = tab.classify(pack(tmp_path, photos), '[]')
    assert not problems and f'of {BATCH + 1}' in progress.state
    assert f'Classified {BATCH} of {BATCH + 1} photos' in view.result
    assert '| unreadable | 1 |' in view.result
    table = next(x for x in view.tables if x.suffix == '.csv')
    assert table.name == 'new day classified.csv'
    rows = [*csv.DictReader(table.open(encoding='utf-8-sig'))]
    assert {row['image'].partition('/')[0] for row in rows} == {*CLASSES}
    assert len(rows) == BATCH + 1
    left = {x for x in empty_uploads.rglob('*') if x.is_file()}
    assert left == {*view.tables}


def test_problems_of_a_batch_are_shown(
    recorded_model, empty_uploads, tmp_path, problems
):
    (tmp_path / 'texts').mkdir()
    (tmp_path / 'texts/a.txt').write_text('a')
    tab = BatchTab(IdentifyTab(empty_uploads, recorded_model))
    (view,) = tab.classify(pack(tmp_path, tmp_path / 'texts'), '[]')
    assert 'no photo' in problems[0] and not view.tables
    (view,) = BatchTab(IdentifyTab(empty_uploads)).classify(None, '[]')
    assert 'no model yet' in problems[1] and not view.result
