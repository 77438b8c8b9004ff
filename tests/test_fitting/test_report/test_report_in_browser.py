# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The report in a browser: wide, narrow, dark and printed."""

from contextlib import ExitStack

import pytest
from browser_pages import chromium as chromium_fixture
from browser_pages import playwright, watched
from report_folder import write_folder
from tiny_model import write_tiny

from mmclca.fitting.report import write_report

chromium = chromium_fixture
expect = playwright.expect
pytestmark = pytest.mark.slow
LONG = 'Quercus_robur_' * 9
OVERFLOW = 'document.documentElement.scrollWidth - innerWidth'
BACKGROUND = 'getComputedStyle(document.body).backgroundColor'
LOADED = '[...document.images].every(one => one.naturalWidth)'


@pytest.fixture(scope='module')
def address(tmp_path_factory):
    """Report with all sections and a long name without spaces."""
    folder = tmp_path_factory.mktemp('report')
    write_folder(folder, problems=[LONG], source=f'photos/{LONG}')
    evit = dict(type='mmclca.EViT', keep_rate=0.5)
    write_tiny(folder, reducer=evit, reduce_at=(0, 1))
    (folder / 'tiny.pth').rename(folder / 'model.pth')
    return write_report(folder).as_uri()


@pytest.fixture
def visit(chromium, address):
    """Open the report, and check for requests."""
    with ExitStack() as stack:

        def visit(width, **look):
            size = dict(width=width, height=900)
            opened = watched(chromium, viewport=size, **look)
            page, visit.asked = stack.enter_context(opened)
            page.goto(address)
            return page

        yield visit
    assert [url for url in visit.asked if url[:5] != 'data:'] == [address]


@pytest.mark.parametrize('width', [400, 1200])
def test_report_fits_the_width(visit, width):
    page = visit(width)
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(LOADED)
    expect(page.locator('#kept img')).to_have_count(9)
    page.emulate_media(media='print')
    assert page.evaluate(OVERFLOW) <= 0


def test_report_is_dark_on_a_dark_screen_and_white_on_paper(visit):
    page = visit(1200, color_scheme='dark')
    assert page.evaluate(BACKGROUND) == 'rgb(21, 25, 29)'
    page.emulate_media(media='print')
    assert page.evaluate(BACKGROUND) == 'rgb(255, 255, 255)'
    expect(page.locator('nav')).to_be_hidden()
    assert page.pdf(format='A4')[:4] == b'%PDF'
