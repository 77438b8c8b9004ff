# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The pictures of the docs, and the command that draws them."""

import runpy
import sys
from types import SimpleNamespace

import pytest
from doc_pages import PAGES
from PIL import Image
from tiny_run import ROOT

FOLDER = ROOT / 'tools/dev/pictures'
README = (ROOT / 'README.md').read_text(encoding='utf-8')


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, 'path', [str(FOLDER), *sys.path])
    return SimpleNamespace(**runpy.run_path(str(FOLDER / '__main__.py')))


def files_of(tool):
    """Paths of the pictures that the command draws, and of those kept."""
    import files

    names = [*tool.PICTURES, *files.KEPT]
    return {ROOT / files.path_of(name) for name in names}


def test_every_picture_is_drawn_by_the_command(tool):
    assert set((ROOT / 'docs').rglob('*.png')) == files_of(tool)


def test_every_picture_is_on_a_page(tool):
    pages = {(ROOT / page).parent: '' for page in PAGES}
    for page in PAGES:
        text = (ROOT / page).read_text(encoding='utf-8')
        pages[(ROOT / page).parent] += text
    for file in files_of(tool):
        name = file.relative_to(ROOT / 'docs').as_posix()
        assert any(name.split('/', 1)[-1] in text for text in pages.values())


def test_pictures_are_small():
    sizes = [path.stat().st_size for path in (ROOT / 'docs').rglob('*.png')]
    assert max(sizes) < 200_000
    assert sum(sizes) < 1_800_000


def test_the_hero_shows_the_table_of_the_readme(tool):
    import results

    for label, gmacs, accuracy, *_ in results.hero_points():
        rows = README.splitlines()
        row = f'| {gmacs:.2f}', f'{accuracy:.1f} %'
        found = [line for line in rows if all(x in line for x in row)]
        assert found or label == 'fit', label


def test_a_figure_is_written_with_a_palette(tool, monkeypatch, tmp_path):
    import files
    import layers

    monkeypatch.setattr(files, 'FOLDER', tmp_path)
    size = files.save(layers.resmlp(), 'resmlp')
    with Image.open(tmp_path / 'resmlp.png') as image:
        assert image.mode == 'P'
    assert size < 60_000
