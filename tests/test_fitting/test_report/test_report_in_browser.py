# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The report as a browser shows it, wide, narrow and printed."""

import runpy
import shutil
from types import SimpleNamespace

import pytest
from report_folder import write_folder
from tiny_model import write_tiny
from tiny_run import ROOT

from mmclca.fitting.report import write_report

pytest.importorskip(
    'playwright.sync_api', reason='a browser is driven by playwright'
)
if shutil.which('chromium') is None:
    pytest.skip('no chromium: apt-get install chromium', True)

pytestmark = [pytest.mark.slow, pytest.mark.first]
TOOL = ROOT / 'tools/dev/screenshot_page.py'
drive = SimpleNamespace(**runpy.run_path(str(TOOL)))
LONG = 'Quercus_robur_' * 9
OVERFLOW = 'document.documentElement.scrollWidth - innerWidth'
BACKGROUND = 'getComputedStyle(document.body).backgroundColor'
LOADED = '[...document.images].every(one => one.naturalWidth)'


@pytest.fixture(scope='module')
def address(tmp_path_factory):
    """A report with every section, and a name without a space in it."""
    folder = tmp_path_factory.mktemp('report')
    write_folder(folder, problems=[LONG], source=f'photos/{LONG}')
    evit = dict(type='mmclca.EViT', keep_rate=0.5)
    write_tiny(folder, reducer=evit, reduce_at=(0, 1))
    (folder / 'tiny.pth').rename(folder / 'model.pth')
    return write_report(folder).as_uri()


@pytest.fixture(scope='module')
def chromium():
    with drive.browser() as chromium:
        yield chromium


@pytest.fixture
def visit(chromium, address):
    """Opens the report; it must ask for nothing and complain of nothing."""
    asked, errors, pages = [], [], []

    def visit(width, **look):
        size = dict(width=width, height=900)
        page = chromium.new_page(viewport=size, **look)
        page.on('request', lambda request: asked.append(request.url))
        page.on('pageerror', lambda error: errors.append(str(error)))
        page.on('console', lambda said: errors.append(said.text))
        page.goto(address)
        pages.append(page)
        return page

    yield visit
    for page in pages:
        page.close()
    assert [url for url in asked if url[:5] != 'data:'] == [address]
    assert not errors


@pytest.mark.parametrize('width', [400, 1200])
def test_nothing_sticks_out(visit, width):
    page = visit(width)
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(LOADED)
    assert page.locator('#kept img').count() == 9
    page.emulate_media(media='print')
    assert page.evaluate(OVERFLOW) <= 0


def test_dark_on_a_dark_screen_and_white_on_paper(visit):
    page = visit(1200, color_scheme='dark')
    assert page.evaluate(BACKGROUND) == 'rgb(21, 25, 29)'
    page.emulate_media(media='print')
    assert page.evaluate(BACKGROUND) == 'rgb(255, 255, 255)'
    assert page.locator('nav').is_hidden()
    assert page.pdf(format='A4')[:4] == b'%PDF'
