# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Method pages, and the tokens and GMACs in docs/methods/costs.csv."""

import pytest
import torch
from every_config import piece
from mmengine.config import ConfigDict
from mmengine.registry import init_default_scope
from tiny_run import ROOT

from mmclca.evaluation.cost import count_config
from mmclca.models import TokenReducer, with_reduction
from mmclca.registry import MODELS
from mmclca.utils.files import read_rows

PAGES = ROOT / 'docs/methods'
OVERVIEW = (PAGES / 'README.md').read_text()
COSTS = read_rows(PAGES / 'costs.csv')
METHODS = sorted({cost['method'] for cost in COSTS})
KEEP_RATES = ('1', '0.7', '0.5', '0.25', '0.1')
WITHOUT_PICTURE = {'DynamicViT', 'PatchMerger', 'SiT', 'Sinkhorn'}
slow = pytest.mark.slow


def cost_of(method, size='224', keep_rate='0.5'):
    """Return the stored row of a method."""
    key = method, size, keep_rate
    (found,) = (x for x in COSTS if tuple(x.values())[:3] == key)
    return found


def test_every_method_has_page_picture_and_costs():
    registered = {
        name
        for name, module in MODELS.module_dict.items()
        if issubclass(module, TokenReducer)
        and module is not TokenReducer
        and module.__module__.startswith('mmclca.')
    }
    pages = {path.stem for path in PAGES.glob('[!R]*.md')}
    assert set(METHODS) <= registered
    # with methods outside the comparison, which have no costs
    assert pages == {method.lower() for method in registered}
    assert len(COSTS) == len(METHODS) * 2 * len(KEEP_RATES)
    for method in METHODS:
        assert f'[{method}]({method.lower()}.md)' in OVERVIEW
        picture = f'pictures/methods/{method.lower()}.png'
        page = (PAGES / f'{method.lower()}.md').read_text()
        assert method in WITHOUT_PICTURE or picture in page


@pytest.mark.parametrize('method', METHODS)
def test_overview_shows_stored_costs(method):
    small, large = cost_of(method), cost_of(method, '448')
    gmacs = [
        x[name] for x in (small, large) for name in ('gmacs', 'gmacs_clca')
    ]
    cells = method, small['tokens'], *gmacs
    assert f'| {" | ".join(cells)} |' in OVERVIEW


def test_overview_shows_the_measured_agreement():
    keys = dict(keep_rate='0.5', img_size='224', features='all layers')
    keys |= dict(classifier='ridge', count='3')
    rows = read_rows(ROOT / 'docs/results/few_tokens.csv')
    rows = [row for row in rows if row.items() >= keys.items()]
    agreement = {
        (row['method'], row['network']): float(row['agreement'])
        for row in rows
    }
    for method in METHODS:
        pair = [agreement[method, x] for x in ('deit_tiny', 'vit_tiny')]
        line = next(x for x in OVERVIEW.split('\n') if f'| [{method}](' in x)
        assert line.split(' | ')[4] == '/'.join(f'{x:.0f}' for x in pair)


@pytest.mark.parametrize(
    'method', ['EViT', *(pytest.param(m, marks=slow) for m in METHODS)]
)
def test_stored_costs_equal_counted_costs(method):
    init_default_scope('mmpretrain')
    # one row per method, at different keep rates
    i = 2 if method == 'ATS' else METHODS.index(method) % 5
    stored = cost_of(method, keep_rate=KEEP_RATES[i])
    base = ConfigDict(piece(f'models/clca-{method.lower()}_vit-base-p16'))
    base.model.backbone.img_size, base.model.head.num_classes = 224, 80
    for clca, end in ((False, ''), (True, '_clca')):
        torch.manual_seed(0)  # ATS is counted on a random image
        how = method, float(KEEP_RATES[i])
        model = with_reduction(base.model, *how, cache=clca, cla=clca)
        cost = count_config(model)
        tokens = '/'.join(str(cost.tokens[layer]) for layer in (3, 6, 9, 11))
        assert stored[f'tokens{end}'] == tokens
        assert stored[f'gmacs{end}'] == f'{cost.flops / 1e9:.2f}'
        distances = f'{cost.distances / 1e9:.2f}' if cost.distances else ''
        assert stored[f'distance_gmacs{end}'] == distances
