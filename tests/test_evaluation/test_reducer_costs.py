# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tokens, multiply-accumulates and parameters of every method."""

from itertools import cycle, product
from pathlib import Path

import pytest
import torch
from small_models import REDUCE_AT
from test_cost import vit

from mmclca.cli.commands.get_flops import table_lines
from mmclca.evaluation.cost import count, count_config
from mmclca.registry import MODELS

DATA = Path(__file__).parents[1] / 'data'
# The CLCA authors' ViT-B/16 with 80 classes. Key: image size, method, keep
# rate. Value: million parameters, GMACs, tokens after layers 3, 6, 9 and 11;
# first without, then with CLCA (without an unused head). GMACs for ATS are
# incomplete, and at keep rate 1 its tokens depend on the image.
AUTHORS = {
    tuple(row.split()[:3]): row.split()[3:]
    for row in (DATA / 'authors_costs.txt').read_text().splitlines()[1:]
}
OF_ONE_TOKEN = dict(SiT=768 // 2 + 1, PatchMerger=768)  # parameters per token
REDUCERS = sorted({method for _, method, _ in AUTHORS} - {'ATS', 'plain'})
QUICK = {
    ('448', 'plain', '1.0', True),
    *zip(
        cycle(('224', '448')),
        REDUCERS,
        cycle(('0.5', '0.1', '0.1')),
        cycle((False, False, True)),
    ),
}


def model(size, method, keep_rate, clca, **arch):
    method = None if method == 'plain' else method
    return vit(size, method, float(keep_rate), clca, **arch)


def authors(size, method, keep_rate, clca):
    """Million parameters, GMACs and tokens of the authors' model."""
    if clca and (method, keep_rate) == ('ToMe', '1.0'):
        method = 'plain'  # the authors' code crashes; no reduction here
    row = AUTHORS[size, method, keep_rate][3 * clca : 3 * clca + 3]
    params, gmacs, tokens = row
    return float(params), float(gmacs), [int(n) for n in tokens.split('/')]


def ours(tokens):
    """Add the patch token that remains where the authors keep only CLS."""
    alone = tokens[2] == 1
    return [*tokens[:2], *(number + alone for number in tokens[2:])]


def leaving(cost):
    return [cost.tokens[layer] for layer in (*REDUCE_AT, 11)]


def marked_cases():
    """Mark all rows as slow, except one per reducer."""
    for row, clca in product(AUTHORS, (False, True)):
        case = (*row, clca)
        if 'ATS' not in row:
            marks = () if case in QUICK else pytest.mark.slow
            yield pytest.param(*case, marks=marks)


@pytest.mark.parametrize('size, method, keep_rate, clca', list(marked_cases()))
def test_costs_equal_the_authors_models(size, method, keep_rate, clca):
    params, gmacs, tokens = authors(size, method, keep_rate, clca)
    cost = count_config(model(int(size), method, keep_rate, clca))
    assert leaving(cost) == ours(tokens)
    same = ours(tokens) == tokens
    rel, more = (0.001, 0) if same else (0.005, OF_ONE_TOKEN.get(method, 0))
    assert cost.flops == pytest.approx(gmacs * 1e9, rel=rel)
    assert cost.params - more == pytest.approx(params * 1e6, abs=1e3)


@pytest.mark.slow
@pytest.mark.parametrize('keep_rate, clca', [('0.5', True), ('0.1', False)])
def test_ats_costs_equal_the_authors_counts_plus_attention(keep_rate, clca):
    """Their counts omit attention products, and project kept tokens only."""
    params, gmacs, tokens = authors('224', 'ATS', keep_rate, clca)
    cost = count_config(model(224, 'ATS', keep_rate, clca))
    assert leaving(cost) == ours(tokens)
    assert cost.params == pytest.approx(params * 1e6, abs=1e3)
    products = sum(2 * N**2 * 768 for N in cost.attended)
    dropped = sum(cost.attended[i] - cost.tokens[i] for i in REDUCE_AT)
    same = cost.flops - products - dropped * 768**2
    assert same == pytest.approx(gmacs * 1e9, rel=0.005)


@pytest.mark.parametrize(
    'method, keep_rate, clca',
    [('KMedoids', '0.5', True), ('Sinkhorn', '0.1', False)],
)
def test_clustering_methods_keep_as_many_tokens_as_sit(
    method, keep_rate, clca
):
    cost = count_config(model(224, method, keep_rate, clca))
    assert leaving(cost) == ours(authors('224', 'SiT', keep_rate, clca)[-1])


@pytest.mark.parametrize(
    'size, method, lengths, device',
    [
        (64, 'DPCKNN', (16, 8, 5), 'cpu'),
        (112, 'KMedoids', (49, 24, 12), 'meta'),
    ],
)
def test_distances_are_counted_separately(size, method, lengths, device):
    """Each stage computes the distances between all clustered tokens."""
    config = model(size, method, '0.5', False, arch='deit-tiny', channels=192)
    with torch.device(device):
        cost = count(MODELS.build(config))
    assert cost.distances == sum(M**2 * 192 for M in lengths)
    assert cost.flops == sum(cost.parts.values())
    lines = list(table_lines(cost))
    distances = f'Distances  {cost.distances / 1e9:.3f} GMACs'
    assert lines[2].startswith(distances)
