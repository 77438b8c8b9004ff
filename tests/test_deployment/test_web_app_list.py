# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photos, marks and exports in the web app, in a browser."""

import re
from contextlib import contextmanager
from io import BytesIO
from zipfile import ZipFile

import cv2
import numpy as np
import pytest
from browser_pages import chromium, drive, playwright
from installed import NEEDS_COMPILER
from PIL import Image
from small_web_app import (
    CLASSES,
    NEEDS_RUNTIME,
    download,
    mark,
    read_list,
    write_colors,
    write_other,
    write_small_app,
)
from tiny_export import EXPORT
from tiny_photos import write_photos, write_weights
from tiny_run import run_tool

from mmclca import fit
from mmclca.datasets.photos.app_archive import read_facts, unpack_archive
from mmclca.datasets.photos.capture_dates import parse_name
from mmclca.errors import Error
from mmclca.evaluation.accuracy import wilson

__all__ = ['chromium']
expect = playwright.expect
pytestmark = [pytest.mark.slow, NEEDS_COMPILER, NEEDS_RUNTIME]


@pytest.fixture
def photos(tmp_path):
    """Photos in random colors."""
    colors = np.random.default_rng(0).integers(0, 256, (4, 3))
    return write_colors(tmp_path, colors, (1500, 2500))


@contextmanager
def opened(chromium, tmp_path, script=''):
    """Yield a page with the small app, on a phone."""
    phone = dict(width=360, height=740)
    with (
        drive.served(write_small_app(tmp_path)) as address,
        chromium.new_context(viewport=phone) as context,
    ):
        context.add_init_script(script)
        page = context.new_page()
        page.on('dialog', lambda dialog: dialog.accept())
        page.goto(address)
        yield page


def test_marked_photos_are_exported_by_class(chromium, photos, tmp_path):
    with opened(chromium, tmp_path) as page:
        drive.identify(page, *photos)
        cards = page.locator('article')
        expect(cards).to_have_count(4)
        mark(cards.nth(0), 'Correct')
        mark(cards.nth(1), 'Wrong', 'Oak, "OLD"')
        mark(cards.nth(2), 'Wrong', 'new/class')
        cards.nth(0).get_by_label('Plot').fill('12 a')
        cards.nth(0).get_by_label('Note').fill('=wet')
        cards.nth(0).get_by_label('Note').press('Tab')
        expect(page.locator('#here')).to_contain_text('1 of the last 3')
        here = page.locator('#here').inner_text()
        page.reload()
        expect(cards).to_have_count(4)
        expect(cards.nth(0).locator('img').first).to_be_visible()
        rows = read_list(page, tmp_path)
        marked = download(page, 'Export marked', tmp_path / 'marked.zip')
        others = download(page, 'Export other', tmp_path / 'others.zip')
    low, high = wilson(1 / 3, 3)
    assert f'33.3%, 95% interval {100 * low:.1f}% to {100 * high:.1f}%' in here
    assert [row['verdict'] for row in rows] == [
        '',
        'wrong',
        'wrong',
        'correct',
    ]
    assert rows[3]['plot'] == '12 a' and rows[3]['note'] == '=wet'
    assert rows[2]['correction'] == CLASSES[5] == 'oak, "old"'
    facts = read_facts(unpack_archive(marked))
    assert facts.name == 'Übung' and facts.classes == CLASSES
    assert facts.folders['oak, _old_'] == 'oak, "old"'
    assert facts.folders['new_class'] == 'new/class'
    with ZipFile(marked) as archive:
        names = archive.namelist()
        jpegs = {x: archive.read(x) for x in names if x.endswith('.jpg')}
    assert len(jpegs) == 3 and any('_plot-12 a_' in name for name in jpegs)
    for name, content in jpegs.items():
        assert parse_name(name).day_first.year >= 2026
        with Image.open(BytesIO(content)) as image:
            assert image.size == (1024, 614)
    with ZipFile(others) as archive:
        assert archive.testzip() is None
        assert sorted(x.rpartition('/')[0] for x in archive.namelist()) == [
            '',
            'photos',
        ]


def test_corrections_reach_the_next_model_and_its_app(chromium, tmp_path):
    photos, weights = write_photos(tmp_path), write_weights(tmp_path)
    model = fit(photos, tmp_path / 'model', weights=weights, probe_only=True)
    new = tmp_path / 'new.png'
    cv2.imwrite(str(new), np.full((90, 50, 3), (0, 160, 250), 'u1'))

    def export():
        with pytest.MonkeyPatch.context() as patch:
            run_tool(patch, EXPORT, model.folder, '--web', '--float')

    export()
    with (
        drive.served(tmp_path / 'model/web') as address,
        chromium.new_context() as context,
    ):
        page = context.new_page()
        page.goto(address)
        drive.identify(page, new)
        card = page.locator('article')
        mark(card, re.compile('^(Wrong|In the list of classes)$'), 'amber')
        archive = download(page, 'Export marked', tmp_path / 'seen.zip')
        other = write_other(archive, tmp_path / 'other.zip')
        with pytest.raises(Error, match='of another model'):
            model.add_class(other)
        before = len(model.classes)
        model.add_class(archive, force=True)
        assert len(model.classes) == before + 1 and 'amber' in model.classes
        export()
        page.reload()
        page.get_by_role('button', name='Reload').click()
        expect(page.locator('#number')).to_contain_text(f'{before + 1} class')
        expect(card).to_have_count(1)
        drive.identify(page, new)
        expect(card.first.locator('h3')).to_contain_text('amber')
        expect(card).to_have_count(2)
        # earlier scores cannot be combined with new ones
        assert card.last.get_by_label('Add another photo').count() == 0


@pytest.mark.parametrize('kind', ['full', 'blocked', 'missing'])
def test_photos_stay_until_the_page_is_closed_if_nothing_is_stored(
    kind, chromium, photos, tmp_path
):
    script = {
        'full': '',
        'blocked': """IDBFactory.prototype.open = () => {
            throw new DOMException('', 'SecurityError') }""",
        'missing': 'delete globalThis.indexedDB; delete Window.prototype'
        '.indexedDB',
    }[kind]
    with opened(chromium, tmp_path, script) as page:
        expect(page.locator('#files')).to_be_enabled()
        if kind == 'full':
            session = page.context.new_cdp_session(page)
            origin = page.evaluate('location.origin')
            options = dict(origin=origin, quotaSize=1000)
            session.send('Storage.overrideQuotaForOrigin', options)
        drive.identify(page, *photos[:2])
        said = 'full' if kind == 'full' else 'blocks'
        expect(page.locator('#errors')).to_contain_text(said)
        cards = page.locator('article')
        expect(cards).to_have_count(2)
        mark(cards.nth(0), 'Correct')
        mark(cards.nth(1), 'Wrong', 'red')
        assert len(read_list(page, tmp_path)) == 2
        archive = download(page, 'Export marked', tmp_path / 'marked.zip')
        page.get_by_role('button', name='Clear').click()
        expect(cards).to_have_count(0)
    with ZipFile(archive) as archive:
        assert sum(x.endswith('.jpg') for x in archive.namelist()) == 2


def test_two_tabs_share_photos_and_marks(chromium, photos, tmp_path):
    with opened(chromium, tmp_path) as page:
        drive.identify(page, photos[0])
        other = page.context.new_page()
        other.goto(page.url)
        cards, others = page.locator('article'), other.locator('article')
        expect(others).to_have_count(1)
        mark(others.first, 'Wrong', 'blue')
        pressed = cards.first.get_by_role('button', name='Wrong')
        expect(pressed).to_have_attribute('aria-pressed', 'true')
        expect(cards.first.get_by_label('It is')).to_have_value('blue')
        button = 'Add another photo of this plant'
        for tab, path in ((page, photos[1]), (other, photos[2])):
            field = tab.locator('article').first.get_by_label(button)
            field.set_input_files([str(path)])
        expect(cards.first).to_contain_text('0.png')
        for name in ('1.png', '2.png'):
            expect(cards.first).to_contain_text(name)
            expect(others.first).to_contain_text(name)
        (row,) = read_list(page, tmp_path)
    assert row['photos'] == '3' and row['verdict'] == 'wrong'


def test_older_photos_are_shown_after_a_click(chromium, photos, tmp_path):
    with opened(chromium, tmp_path) as page:
        drive.identify(page, *photos * 6)
        cards = page.locator('article')
        expect(cards).to_have_count(20)
        page.get_by_role('button', name='Show older').click()
        expect(cards).to_have_count(24)
