# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures in docs/, and the drawing command."""

import re
import runpy
import sys
from types import SimpleNamespace

import pytest
from doc_pages import PAGES
from PIL import Image
from tiny_run import ROOT

FOLDER = ROOT / 'tools/dev/pictures'
LINK = re.compile(r'[\w./-]+\.png')
README = (ROOT / 'README.md').read_text(encoding='utf-8')


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, 'path', [str(FOLDER), *sys.path])
    return SimpleNamespace(**runpy.run_path(str(FOLDER / '__main__.py')))


def files_of(tool):
    """Paths to drawn and stored pictures."""
    import files

    names = [*tool.PICTURES, *files.STORED]
    return {ROOT / files.get_path(name) for name in names}


def stored():
    """Paths to the pictures in docs, without a built site."""
    found = (ROOT / 'docs').rglob('*.png')
    return {path for path in found if '_build' not in path.parts}


def test_every_picture_is_drawn_by_the_command(tool):
    assert stored() == files_of(tool)


def test_every_picture_is_on_a_page(tool):
    shown = {
        ((ROOT / page).parent / link).resolve()
        for page in PAGES
        for link in LINK.findall((ROOT / page).read_text(encoding='utf-8'))
    }
    assert files_of(tool) <= shown


def test_hero_picture_equals_readme(tool):
    import results
    from study.fit_values import FitReport
    from study.page_values import Report

    if not FitReport(Report.read()).is_complete:
        pytest.skip('rows of fit are not measured')

    lines = README.splitlines()
    for label, gmacs, accuracy, *_ in results.hero_points():
        numbers = f'{gmacs:.2f}', f'{accuracy:.1f}%'
        assert any(all(x in line for x in numbers) for line in lines), label


def test_saved_figure_has_a_palette(tool, monkeypatch, tmp_path):
    import files
    import results

    monkeypatch.setattr(files, 'FOLDER', tmp_path)
    size = files.save(results.mae_cka(), 'cka')
    with Image.open(tmp_path / 'cka.png') as image:
        assert image.mode == 'P'
    assert size < 60_000


def test_pictures_are_small():
    sizes = [path.stat().st_size for path in stored()]
    assert max(sizes) < 200_000
    assert sum(sizes) < 1_800_000
