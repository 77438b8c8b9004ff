# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Drive the web page in a headless browser, and take screenshots of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTH, HEIGHT = 1280, 900
COLOURS = 160  # of the palette: no difference to be seen, a third of the size


@contextmanager
def browser() -> Iterator[Browser]:
    """Debian's chromium, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which('chromium'), args=['--no-sandbox']
        )
        try:
            yield chromium
        finally:
            chromium.close()


def open_page(page: Page, address: str) -> None:
    """Go to the page, as it is before a leaf is dropped."""
    from playwright.sync_api import expect

    page.set_viewport_size(dict(width=WIDTH, height=HEIGHT))
    page.goto(address)
    expect(page.locator('#leaf')).to_contain_text('Drop a photo')


def drop(page: Page, path: str) -> None:
    """Put a file where leaves are dropped."""
    page.set_input_files('#leaf input[type=file]', path)


def wait_for_costs(page: Page, name: str) -> None:
    """Wait for the last of the answers, that for a method and a rate."""
    from playwright.sync_api import expect

    expect(page.locator('#costs')).to_contain_text(
        re.compile(rf'{re.escape(name)}.*full model', re.DOTALL)
    )


def write_picture(page: Page, out: str | Path) -> None:
    """Write all of the page, in a palette."""
    from PIL import Image

    page.mouse.move(0, 0)
    page.screenshot(path=out, full_page=True, animations='disabled')
    with Image.open(out) as image:
        small = image.convert('RGB').quantize(
            COLOURS, Image.Quantize.MEDIANCUT
        )
    small.save(out, optimize=True)
