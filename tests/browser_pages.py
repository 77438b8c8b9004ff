# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Web pages in a headless browser."""

import runpy
import shutil
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from tiny_run import ROOT

playwright = pytest.importorskip(
    'playwright.sync_api', reason='a browser is driven by playwright'
)
if shutil.which('chromium') is None:
    pytest.skip('no chromium: apt-get install chromium', True)

# the default of 5 s is too short on a busy computer
playwright.expect.set_options(timeout=30_000)
TOOL = ROOT / 'tools/dev/screenshot_page.py'
drive = SimpleNamespace(**runpy.run_path(str(TOOL)))


@pytest.fixture(scope='module')
def chromium():
    with drive.browser() as chromium:
        yield chromium


@contextmanager
def watched(chromium, **options):
    """Yield a new page and its requested addresses; fail on page errors."""
    page = chromium.new_page(**options)
    asked, errors = [], []
    page.on('request', lambda request: asked.append(request.url))
    page.on('pageerror', lambda error: errors.append(str(error)))
    page.on(
        'console',
        lambda said: said.type == 'error' and errors.append(said.text),
    )
    yield page, asked
    page.close()
    assert asked and not errors, errors


def drop_folder(page, path, zone='#folder'):
    """Drop a folder from the file manager on a tab."""
    box = page.locator(zone).bounding_box()
    sent = dict(x=box['x'] + 50, y=box['y'] + 50)
    sent['data'] = dict(items=[], files=[str(path)], dragOperationsMask=1)
    session = page.context.new_cdp_session(page)
    for step in ('dragEnter', 'dragOver', 'drop'):
        session.send('Input.dispatchDragEvent', dict(type=step, **sent))
