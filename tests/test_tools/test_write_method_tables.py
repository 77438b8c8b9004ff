# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The pages of the methods, and that their tables are what is counted."""

import re
import runpy

import pytest
from mmengine.registry import init_default_scope
from tiny_run import ROOT

from mmclca.benchmark.pages import line
from mmclca.models import TokenReducer
from mmclca.registry import MODELS

TOOL = runpy.run_path(str(ROOT / 'tools/dev/write_method_tables.py'))
PAGES = ROOT / 'docs/methods'
slow = pytest.mark.slow
METHODS = sorted(path.stem for path in PAGES.glob('[!R]*.md'))
ROW = re.compile(r'^\| (?:1|0\.\d+) \|.*\|$', re.MULTILINE)


def rows(method):
    """The rows of the two tables of a page, 224 px first."""
    found = ROW.findall((PAGES / f'{method}.md').read_text())
    return found[:5], found[5:]


def test_every_method_has_a_page_a_picture_and_a_line():
    overview = (PAGES / 'README.md').read_text()
    registered = {
        name.lower()
        for name, module in MODELS.module_dict.items()
        if issubclass(module, TokenReducer) and module is not TokenReducer
    }
    assert set(METHODS) <= registered
    assert len(METHODS) == 15
    for method in METHODS:
        assert f'({method}.md)' in overview
        assert (
            f'pictures/methods/{method}.png'
            in (PAGES / f'{method}.md').read_text()
        )
        picture = ROOT / f'docs/pictures/methods/{method}.png'
        assert 10_000 < picture.stat().st_size < 150_000


@pytest.mark.parametrize(
    'method', ['evit', *(pytest.param(m, marks=slow) for m in METHODS)]
)
def test_tables_are_what_is_counted(method):
    init_default_scope('mmpretrain')
    small, large = rows(method)
    assert len(small) == len(large) == 5
    rates = [float(row.split('|')[1]) for row in small]
    assert rates == list(TOOL['KEEP_RATES'])
    # one row of each, at different keep rates
    i = 2 if method == 'ats' else METHODS.index(method) % 5
    assert line(TOOL['row'](method, 224, rates[i])) == small[i]
