# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A trained model in the form of the command ``page``."""

import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from browser_pages import playwright
from PIL import Image
from tiny_photos import write_weights
from tiny_run import environment

import mmclca
from mmclca.datasets.synthetic_leaves import draw_leaf, make_cultivars

expect = playwright.expect
CHANGE = 600_000  # ms, on a busy computer


def draw_leaves(folders, per_class, **options):
    """Draw leaves of one cultivar per folder."""
    rng = np.random.default_rng(0)
    cultivars = make_cultivars(len(folders), **options)
    for folder, cultivar in zip(folders, cultivars, strict=True):
        folder.mkdir(parents=True)
        for i in range(per_class):
            image = Image.fromarray(draw_leaf(cultivar, rng, 64))
            image.save(folder / f'{i:02}.png')


@pytest.fixture
def place(tmp_path):
    """Folder with a model for three cultivars, and a fourth one."""
    torch.manual_seed(0)
    weights = write_weights(tmp_path)
    photos = tmp_path / 'models/leaves/photos'
    known = [photos / f'c{i}' for i in range(3)]
    draw_leaves([*known, tmp_path / 'new/c3'], 6, difference=1)
    options = dict(name='leaves', runtime='pytorch', probe_only=True)
    mmclca.fit(photos, photos.parent / 'model', weights=weights, **options)
    return tmp_path


@pytest.fixture
def address(place):
    """Address for the model."""
    command = [sys.executable, '-m', 'mmclca', 'page']
    options = dict(cwd=place, stdout=subprocess.PIPE, text=True)
    process = subprocess.Popen(command, env=environment(), **options)
    yield re.search(r'http\S+/', process.stdout.readline())[0]
    process.send_signal(signal.SIGINT)
    process.wait(60)


def choose(page, box, name):
    """Choose an entry in a drop-down list."""
    page.locator(f'#{box} input').click()
    page.get_by_role('option', name=name, exact=True).click()


def open_part(page, title):
    """Open a part for changes."""
    page.locator('#growth').get_by_role('button', name=title).click()


def wait_for(page, words):
    """Wait until a change ends."""
    state = page.locator('#state')
    expect(state).to_contain_text(words, timeout=CHANGE)
    expect(page.locator('#growth')).to_be_visible()
