# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The report in a browser: wide, narrow, dark and printed."""

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
    write_folder(
        folder,
        problems=[dict(kind='assumption', reason=LONG)],
        source=f'photos/{LONG}',
    )
    evit = dict(type='mmclca.EViT', keep_rate=0.5)
    write_tiny(folder, reducer=evit, reduce_at=(0, 1))
    (folder / 'tiny.pth').rename(folder / 'model.pth')
    return write_report(folder).as_uri()


def test_report_fits_the_width_and_is_dark_or_printed(chromium, address):
    for width, scheme, background in (
        (400, 'light', 'rgb(255, 255, 255)'),
        (1200, 'dark', 'rgb(21, 25, 29)'),
    ):
        size = dict(width=width, height=900)
        options = dict(viewport=size, color_scheme=scheme)
        with watched(chromium, **options) as (page, asked):
            page.goto(address)
            assert page.evaluate(OVERFLOW) <= 0
            assert page.evaluate(LOADED)
            assert page.evaluate(BACKGROUND) == background
            expect(page.locator('#kept img')).to_have_count(9)
            page.emulate_media(media='print')
            assert page.evaluate(OVERFLOW) <= 0
            assert page.evaluate(BACKGROUND) == 'rgb(255, 255, 255)'
            expect(page.locator('nav')).to_be_hidden()
            assert page.pdf(format='A4')[:4] == b'%PDF'
        assert [url for url in asked if url[:5] != 'data:'] == [address]
