# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A trained model grows in the form: photos, classes, names, undo."""

import re
import shutil

import pytest
from browser_pages import chromium, playwright, watched
from form_models import CHANGE, address, choose, open_part, place, wait_for

from mmclca.fitting import FittedModel

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

__all__ = ['address', 'chromium', 'place']
pytestmark = pytest.mark.slow
expect = playwright.expect


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
    wait_for(page, 'Classes: 3 -> 4')
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
    wait_for(page, 'Classes: 4 -> 3')
    choose(page, 'class', 'c1')
    page.locator('#remove_class').click()
    wait_for(page, 'Classes: 3 -> 2')


def check_many_photos_are_classified(page, place):
    """Download tables with all predictions."""
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
    link = '#batch_tables a[download="new classified{}"]'
    expect(page.locator(link.format('.xlsx'))).to_be_visible()
    with page.expect_download() as download:
        page.locator(link.format('.csv')).click()
    shutil.copy(download.value.path(), place / 'table.csv')
    assert len((place / 'table.csv').read_text().splitlines()) == 7
