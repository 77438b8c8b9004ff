# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A trained model grows in the form: photos, classes, names, undo."""

import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from browser_pages import chromium as chromium_fixture
from browser_pages import playwright, watched
from PIL import Image
from tiny_photos import write_weights
from tiny_run import environment

import mmclca
from mmclca.datasets.synthetic_leaves import draw_leaf, make_cultivars
from mmclca.fitting import FittedModel

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

chromium = chromium_fixture
pytestmark = pytest.mark.slow
expect = playwright.expect
CHANGE = 120_000  # ms


@pytest.fixture
def place(tmp_path):
    """Folder with a model for three cultivars, and a fourth one."""
    torch.manual_seed(0)
    weights, rng = write_weights(tmp_path), np.random.default_rng(0)
    photos = tmp_path / 'models/leaves/photos'
    for number, cultivar in enumerate(make_cultivars(4, difference=1)):
        folder = (photos if number < 3 else tmp_path / 'new') / f'c{number}'
        folder.mkdir(parents=True)
        for i in range(6):
            image = Image.fromarray(draw_leaf(cultivar, rng, 64))
            image.save(folder / f'0{i}.png')
    options = dict(name='leaves', runtime='pytorch', probe_only=True)
    mmclca.fit(photos, photos.parent / 'model', weights=weights, **options)
    return tmp_path


@pytest.fixture
def address(place):
    """Address for the model."""
    command = [sys.executable, '-m', 'mmclca', 'page']
    options = dict(cwd=place, stdout=subprocess.PIPE, text=True)
    process = subprocess.Popen(command, env=environment(), **options)
    yield re.search(r'http\S+/', process.stdout.readline())[0]
    process.send_signal(signal.SIGINT)
    process.wait(60)


def choose(page, box, name):
    """Choose an entry in a drop-down list."""
    page.locator(f'#{box} input').click()
    page.get_by_role('option', name=name, exact=True).click()


def open_part(page, title):
    """Open a part for changes."""
    page.locator('#growth').get_by_role('button', name=title).click()


def wait_for(page, words):
    """Wait until a change ends."""
    state = page.locator('#state')
    expect(state).to_contain_text(words, timeout=CHANGE)
    expect(page.locator('#growth')).to_be_visible()


def test_model_grows_in_the_form(chromium, address, place):
    size = dict(width=360, height=900)
    with watched(chromium, viewport=size) as (page, _):
        page.goto(address)
        expect(page.locator('#folder')).to_contain_text('Drop')
        choose(page, 'name', 'leaves')
        open_part(page, 'Change the model')
        check_photos_are_added(page, place)
        check_marked_photos_are_corrected(page)
        check_classes_are_renamed_and_joined(page)
        check_many_photos_are_classified(page, place)
        page.get_by_role('tab', name='Train').click()
        assert page.evaluate('document.body.scrollWidth') <= 360
        texts = page.locator('body').inner_text()
        assert '--' not in texts and '-m mmclca' not in texts
        open_part(page, 'Rename or delete')
        page.locator('#model_name').get_by_role('textbox').fill('Üzüm')
        page.locator('#rename_model').click()
        expect(page.locator('#name input')).to_have_value('Üzüm')
        page.locator('#delete_model').click()
        page.locator('#delete_now').click()
        expect(page.locator('#name input')).to_have_value('')
    assert not [*(place / 'models').iterdir()]


def check_photos_are_added(page, place):
    """Add a class, and undo it."""
    open_part(page, 'Add photos')
    page.set_input_files('#more input', place / 'new')
    wait_for(page, 'Classes 3 -> 4')
    summary = page.locator('#found textarea')
    expect(summary).to_have_value(re.compile('24 photos.*c3: 6', re.S))
    model = FittedModel(place / 'models/leaves/model')
    assert model.classes == ['c0', 'c1', 'c2', 'c3']
    page.locator('#undo').click()
    wait_for(page, 'Restored')
    assert FittedModel(model.folder).classes == ['c0', 'c1', 'c2']
    page.locator('#undo').click()
    wait_for(page, '4 classes')
    assert FittedModel(model.folder).classes == model.classes


def check_marked_photos_are_corrected(page):
    """Move a marked photo, and remove another one."""
    open_part(page, 'Check photos')
    page.locator('#mark').click()
    photo = page.locator('#marked_photo input')
    expect(photo).to_have_value(re.compile('^1: '))
    label = re.search(r', (c\d)[?]', photo.input_value())[1]
    choose(page, 'right_class', 'c1' if label == 'c0' else 'c0')
    page.locator('#move').click()
    expect(page.locator('#corrected')).to_contain_text('1 corrected')
    expect(photo).to_have_value(re.compile('^2: '))
    page.locator('#remove').click()
    expect(page.locator('#corrected')).to_contain_text('2 → remove')
    page.locator('#apply').click()
    expect(page.locator('#found textarea')).to_have_value(
        re.compile('23 photos'), timeout=CHANGE
    )


def check_classes_are_renamed_and_joined(page):
    """Rename a class; keep two classes, and then join them."""
    open_part(page, 'Classes')
    new = page.locator('#class_name').get_by_role('textbox')
    choose(page, 'class', 'c2')
    new.fill('Ash & co')
    page.locator('#rename_class').click()
    wait_for(page, 'Renamed')
    for answer in ('dismiss', 'confirm'):
        choose(page, 'class', 'c3')
        new.fill('Ash & co')
        page.locator('#rename_class').click()
        question = page.locator('#question')
        expect(question).to_contain_text('already has', timeout=CHANGE)
        page.locator(f'#{answer}').click()
        expect(page.locator('#confirm')).to_be_hidden()
    wait_for(page, 'Classes 4 -> 3')
    choose(page, 'class', 'c1')
    page.locator('#remove_class').click()
    wait_for(page, 'Classes 3 -> 2')


def check_many_photos_are_classified(page, place):
    """Download a table with all predictions."""
    page.locator('#try').click()
    more = page.get_by_role('tab', name='Many photos')
    if not more.is_visible():  # on a small screen
        page.get_by_role('button', name='…').or_(
            page.locator('.overflow-menu button').first
        ).click()
        more = page.get_by_role('button', name='Many photos')
    more.click()
    page.set_input_files('#batch input', place / 'new')
    result = page.locator('#batch_result')
    expect(result).to_contain_text('Classified 6 of 6', timeout=CHANGE)
    with page.expect_download() as download:
        page.locator('#batch_tables a[download="new classified.csv"]').click()
    shutil.copy(download.value.path(), place / 'table.csv')
    assert len((place / 'table.csv').read_text().splitlines()) == 7
