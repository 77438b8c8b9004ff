# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From a photo in the phone app to a better model, and to its new app."""

import re
import shutil

import cv2
import pytest
from browser_pages import chromium, drive, playwright, watched
from form_models import CHANGE, address, choose, open_part, place, wait_for
from installed import NEEDS_COMPILER
from small_web_app import NEEDS_RUNTIME, download, mark, write_other

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

__all__ = ['address', 'chromium', 'place']
pytestmark = [pytest.mark.slow, NEEDS_COMPILER, NEEDS_RUNTIME]
expect = playwright.expect
WRONG = re.compile('^(Wrong|In the list of classes)$')  # of an unknown class


@pytest.fixture
def leaves(place):
    """Leaves of a new class, which are blue."""
    paths = sorted((place / 'new/c3').iterdir())
    for path in paths:
        cv2.imwrite(str(path), cv2.imread(str(path))[..., ::-1])
    return paths


def download_app(form, folder):
    """Unpack the phone app of the form into a folder, as on a web host."""
    form.locator('#pack').click()
    with form.expect_download(timeout=CHANGE) as archive:
        link = '#packed a[download="leaves phone app.zip"]'
        form.locator(link).click(timeout=CHANGE)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.unpack_archive(archive.value.path(), folder, 'zip')


def correct(app, leaves, folder):
    """Identify leaves of a new class, and export them with its name."""
    drive.identify(app, *leaves)
    cards = app.locator('article')
    for number in range(len(leaves)):
        mark(cards.nth(number), WRONG, 'blue')
    return download(app, 'Export marked', folder / 'seen.zip')


def add(form, archive):
    """Add the photos of an archive to the model."""
    with form.expect_file_chooser() as chooser:
        form.locator('#more_zip').click()
    chooser.value.set_files(archive)


def check_updated(app, leaf):
    """Check that the new app names a leaf of the new class."""
    cards = app.locator('article')
    number = cards.count()
    app.reload()
    app.get_by_role('button', name='Reload').click()
    expect(app.locator('#number')).to_contain_text('4 classes')
    expect(cards).to_have_count(number)
    expect(cards.last.get_by_label('It is')).to_have_value('blue')
    drive.identify(app, leaf)
    expect(cards.first.locator('h3')).to_contain_text('blue')


def test_corrections_in_the_app_lead_to_a_better_model_and_app(
    chromium, address, place, leaves
):
    *leaves, last = leaves
    phone = dict(width=360, height=740)
    with watched(chromium) as (form, _):
        form.goto(address)
        expect(form.locator('#folder')).to_contain_text('Drop')
        choose(form, 'name', 'leaves')
        download_app(form, place / 'web')
        with (
            drive.served(place / 'web') as host,
            chromium.new_context(viewport=phone) as context,
        ):
            app = context.new_page()
            app.goto(host)
            archive = correct(app, leaves, place)
            open_part(form, 'Change the model')
            open_part(form, 'Add photos')
            add(form, write_other(archive, place / 'other.zip'))
            expect(form.get_by_text('of another model')).to_be_visible()
            add(form, archive)
            wait_for(form, 'Classes: 3 -> 4')
            expect(form.locator('#result')).to_contain_text('right name')
            download_app(form, place / 'web')
            check_updated(app, last)
