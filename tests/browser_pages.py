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
    assert asked and not errors
