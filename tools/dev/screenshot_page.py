# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Take a screenshot of the page: ``screenshot_page.py CKPT OUT``."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mmclca import cli

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTH, HEIGHT = 1280, 900
COLOURS = 160  # of the palette: no difference to be seen, a third of the size


def parse_args():
    parser = cli.Parser(
        description='Open the page of a trained model in a headless browser, '
        'upload a synthetic leaf, and save a screenshot'
    )
    parser.add('checkpoint', 'checkpoint of the model')
    parser.add('out', 'screenshot to write (.png)', type=Path)
    parser.add('--leaf', 'number of the synthetic leaf, 1 to 8', 2)
    return parser.parse_args()


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


def main():
    args = parse_args()
    from mmclca.apis import TokenReductionInferencer
    from mmclca.page.leaves import draw_examples
    from mmclca.page.server import served

    inferencer = TokenReductionInferencer(args.checkpoint, device='cpu')
    with (
        tempfile.TemporaryDirectory() as folder,
        served(inferencer, name=Path(args.checkpoint).name) as (address, _),
        browser() as chromium,
    ):
        page = chromium.new_page()
        open_page(page, address)
        drop(page, draw_examples(folder)[args.leaf - 1])
        wait_for_costs(page, '')
        write_picture(page, args.out)
    print(f'Saved      {args.out} ({args.out.stat().st_size // 1000} kB)')


if __name__ == '__main__':
    cli.run(main)
