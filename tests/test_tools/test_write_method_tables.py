# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Method pages, with their tokens and GMACs."""

import itertools
import re
import runpy

import pytest
from mmengine.registry import init_default_scope
from tiny_run import ROOT

from mmclca.models import TokenReducer
from mmclca.registry import MODELS

TOOL = runpy.run_path(str(ROOT / 'tools/dev/write_method_tables.py'))
PAGES = ROOT / 'docs/methods'
COSTS = TOOL['read_costs']()
METHODS = sorted({cost['method'] for cost in COSTS})
WITHOUT_PICTURE = {'DynamicViT', 'PatchMerger', 'SiT', 'Sinkhorn'}
slow = pytest.mark.slow


def test_every_method_has_page_picture_and_table_row():
    overview = (PAGES / 'README.md').read_text()
    registered = {
        name
        for name, module in MODELS.module_dict.items()
        if issubclass(module, TokenReducer) and module is not TokenReducer
    }
    pages = {path.stem for path in PAGES.glob('[!R]*.md')}
    assert set(METHODS) <= registered
    assert pages == {method.lower() for method in METHODS}
    assert len(METHODS) == 15
    for method in METHODS:
        assert f'[{method}]({method.lower()}.md)' in overview
        if method in WITHOUT_PICTURE:
            continue
        picture = f'pictures/methods/{method.lower()}.png'
        assert picture in (PAGES / f'{method.lower()}.md').read_text()
        size = (ROOT / 'docs' / picture).stat().st_size
        assert 10_000 < size < 150_000


def test_costs_cover_every_method_size_and_keep_rate():
    rates = [f'{rate:g}' for rate in TOOL['KEEP_RATES']]
    sizes = [str(size) for size in TOOL['SIZES']]
    found = [
        (cost['method'], cost['img_size'], cost['keep_rate']) for cost in COSTS
    ]
    wanted = sorted(itertools.product(METHODS, sizes, rates))
    assert sorted(found) == wanted


def test_table_of_the_page_shows_the_stored_costs():
    text = TOOL['PAGE'].read_text()
    table = text.partition(TOOL['BEGIN'])[2].partition(TOOL['END'])[0]
    assert table.splitlines() == TOOL['shown'](COSTS)
    assert len(re.findall(r'^\| \w+ \| \d', table, re.M)) == 15


@pytest.mark.parametrize(
    'method', ['EViT', *(pytest.param(m, marks=slow) for m in METHODS)]
)
def test_stored_costs_equal_counted_costs(method):
    init_default_scope('mmpretrain')
    small = [
        cost
        for cost in COSTS
        if cost['method'] == method and cost['img_size'] == '224'
    ]
    # one row per method, at different keep rates
    i = 2 if method == 'ATS' else METHODS.index(method) % 5
    rate = TOOL['KEEP_RATES'][i]
    assert TOOL['row'](method, 224, rate) == small[i]
