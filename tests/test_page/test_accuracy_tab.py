# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Test a model on an uploaded folder with sorted photos."""

import csv
import json
import shutil

import pytest
from browser_pages import chromium as chromium_fixture
from browser_pages import drop_folder, playwright, watched
from tiny_photos import write_photos
from tiny_run import CLASSES

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

import gradio as gr

from mmclca.page.accuracy import AccuracyTab
from mmclca.page.accuracy_layout import build_accuracy
from mmclca.page.identify import IdentifyTab
from mmclca.page.prediction import BATCH
from mmclca.page.server import serve, uploads_folder

chromium = chromium_fixture
expect = playwright.expect


def pack(tmp_path, folder, name='new day'):
    """Upload a ZIP archive with a folder."""
    path = shutil.make_archive(tmp_path / 'uploads' / name, 'zip', folder)
    return [dict(path=path)]


def test_archive_is_measured_and_deleted(
    recorded_model, empty_uploads, tmp_path, problems
):
    photos = write_photos(tmp_path, per_class=BATCH // 4)
    (photos / 'pine').mkdir()
    shutil.copy(next(photos.glob('ash/*.*')), photos / 'pine')
    tab = AccuracyTab(IdentifyTab(empty_uploads, recorded_model))
    progress, view = tab.measure(pack(tmp_path, photos), '[]')
    assert not problems
    assert progress.state == f'Classified {BATCH} of {BATCH} photos'
    assert not progress.result and not view.state
    assert f'on {BATCH} photos' in view.result
    assert 'pine' in view.result
    rows = [*csv.DictReader(view.table.open(encoding='utf-8-sig'))]
    assert {row['class'] for row in rows} == {*CLASSES}
    assert all(row['image'].startswith(row['class']) for row in rows)
    assert [*empty_uploads.rglob('*.*')] == [view.table]


def test_folder_with_its_paths_is_measured(
    recorded_model, empty_uploads, problems
):
    files, paths = [], []
    for number, path in enumerate(write_photos(empty_uploads, 1).rglob('*.*')):
        files.append(path.rename(empty_uploads / f'{number}.png'))
        paths.append(f'day/{path.parent.name}/{path.name}')
    upload = [dict(path=str(file)) for file in files]
    tab = AccuracyTab(IdentifyTab(empty_uploads, recorded_model))
    *_, view = tab.measure(upload, json.dumps(paths))
    assert not problems and 'on 4 photos' in view.result
    assert view.table.name == 'day tested.csv'


@pytest.mark.parametrize('forged', ['/etc/passwd', None])
def test_problems_are_shown(
    forged, recorded_model, empty_uploads, tmp_path, problems
):
    upload = [dict(path=forged)]
    if forged is None:
        (tmp_path / 'other/pine').mkdir(parents=True)
        photos = write_photos(tmp_path / 'other', per_class=1)
        shutil.rmtree(photos.parent / 'pine')
        for path in photos.iterdir():
            path.rename(path.with_name(f'{path.name} of a garden'))
        upload = pack(tmp_path, photos)
    tab = AccuracyTab(IdentifyTab(empty_uploads, recorded_model))
    (view,) = tab.measure(upload, '[]')
    (problem,) = problems
    assert not view.result
    expected = 'expected folders named' if forged is None else 'not uploaded'
    assert expected in problem


def test_tab_shows_a_table_at_the_end(recorded_model, empty_uploads, tmp_path):
    with gr.Blocks():
        tab = AccuracyTab(IdentifyTab(empty_uploads, recorded_model))
        parts = build_accuracy(tab, gr.State())
    upload = pack(tmp_path, write_photos(tmp_path, per_class=1))
    *_, view = tab.measure(upload, '[]')
    update = parts.show(view)
    assert {*update} == {*parts.outputs}
    assert update[parts.table].visible and not parts.clear()[parts.result]


@pytest.mark.slow
def test_tab_tests_a_dropped_folder_in_a_browser(
    chromium, recorded_model, tmp_path
):
    photos = write_photos(tmp_path, per_class=2)
    with (
        uploads_folder() as folder,
        serve(IdentifyTab(folder, recorded_model)) as (address, _),
        watched(chromium) as (page, _),
    ):
        page.goto(address)
        page.get_by_role('tab', name='Test').click()
        drop_folder(page, photos, '#sorted')
        result = page.locator('#test_result')
        expect(result).to_contain_text('on 8 photos')
        with page.expect_download() as download:
            page.locator('#test_table a[download]').click()
        table = download.value.path().read_text('utf-8-sig')
        assert table.count('.png') == 8
        assert not [*folder.rglob('*.png')]
