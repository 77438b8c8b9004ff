# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Drive web pages in a headless browser, and take screenshots."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTH, HEIGHT = 1280, 900
COLOURS = 160  # palette size: looks equal at a third of the file size


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Debian's chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which('chromium'), args=['--no-sandbox']
        )
        try:
            yield chromium
        finally:
            chromium.close()


class QuietHandler(SimpleHTTPRequestHandler):
    """Handler without a log."""

    def log_message(self, *_):
        pass


@contextmanager
def served(
    folder: str | Path, host: type[QuietHandler] = QuietHandler
) -> Iterator[str]:
    """Serve a folder as a web host does; yield its address."""
    handler = partial(host, directory=folder)
    with ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f'http://127.0.0.1:{server.server_port}/'
        finally:
            server.shutdown()


def identify(page: Page, *paths: str | Path, entry: str = '#files') -> None:
    """Choose photos in an exported web app and wait for the results."""
    from playwright.sync_api import expect

    page.set_input_files(entry, [str(path) for path in paths])
    done = re.compile(f'Identified .* of {len(paths)}')
    # the first photo waits for the model
    expect(page.locator('#status')).to_have_text(done, timeout=60_000)


def open_page(page: Page, address: str) -> None:
    """Open the page and wait for the empty drop area."""
    from playwright.sync_api import expect

    page.set_viewport_size(dict(width=WIDTH, height=HEIGHT))
    page.goto(address)
    expect(page.locator('#leaf')).to_contain_text('Drop a photo')


def drop(page: Page, path: str) -> None:
    """Drop a photo file on the page."""
    page.set_input_files('#leaf input[type=file]', path)


def wait_for_scores(page: Page) -> None:
    """Wait for the scores of a photo."""
    from playwright.sync_api import expect

    expect(page.locator('#classes')).to_contain_text('%')


def explore(page: Page) -> None:
    """Open the tab with the patches of the named photo."""
    wait_for_scores(page)
    page.get_by_role('tab', name='explore').click()


def wait_for_costs(page: Page, name: str) -> None:
    """Wait for the cost line with a method name, the last output."""
    from playwright.sync_api import expect

    expect(page.locator('#costs')).to_contain_text(
        re.compile(rf'{re.escape(name)}.*full model', re.DOTALL)
    )


def write_picture(page: Page, out: str | Path, full_page: bool = True) -> None:
    """Write a screenshot with a palette."""
    from PIL import Image

    page.mouse.move(0, 0)
    page.screenshot(path=out, full_page=full_page, animations='disabled')
    with Image.open(out) as image:
        small = image.convert('RGB').quantize(
            COLOURS, Image.Quantize.MEDIANCUT
        )
    small.save(out, optimize=True)
