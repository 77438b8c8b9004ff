# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which model is taken, whether it is trained, and what is held out."""

import pandas as pd
import pytest
from tables import select
from tiny_run import ROOT

from mmclca.datasets.photographs import LabeledImages
from mmclca.fitting.model import (
    BEST,
    DEIT,
    DIFF_RATE,
    VIT_TINY,
    choose,
    choose_model,
    describe,
    parse_budget,
)
from mmclca.fitting.training import hold_out, photos_per_class, why_skipped
from mmclca.fitting.weights import PIXELS, VIT, Pretrained
from mmclca.models import Variant

ARCH = dict(
    embed_dims=192, num_layers=12, num_heads=3, feedforward_channels=768
)
TINY = dict(type=VIT, arch=ARCH, patch_size=16)
RESULTS = ROOT / 'docs/results/few_photographs_frozen.csv'
READ = dict(
    cls_std='CLS and std, layers 0 to 11',
    cls_average_std='CLS, average and std, layers 0 to 8',
)
PAIR = Variant(None, 1.0, 224), Variant('EViT', 0.5, 224)


@pytest.mark.parametrize(
    'text, budget',
    [
        ('0.5GMACs', (0.5, 'GMACs')),
        ('.5 gmacs', (0.5, 'GMACs')),
        ('20ms', (20, 'ms')),
    ],
)
def test_budgets(text, budget):
    assert parse_budget(text) == budget


@pytest.mark.parametrize('text', ['20', 'ms', '20 s', '0ms', '-1ms', ''])
def test_no_budgets(text):
    with pytest.raises(ValueError, match='such as 0.5GMACs or 20ms'):
        parse_budget(text)


def test_the_most_accurate_within_a_budget():
    costs = [*zip(PAIR, (1.2, 0.6), strict=True)]
    assert choose(costs, 1.2, 'GMACs') is PAIR[0]
    assert choose(costs, 1, 'GMACs') is PAIR[1]
    with pytest.raises(ValueError, match='0.6 GMACs .EViT'):
        choose(costs, 0.5, 'GMACs')


def test_tables_are_sorted_by_accuracy():
    later = [row for row in DEIT if row[:2] != (DIFF_RATE, 224)]
    for table in (later, VIT_TINY):
        accuracies = [accuracy for *_, accuracy in table]
        assert accuracies == sorted(accuracies, reverse=True)


@pytest.mark.parametrize(
    'backbone, table', [('deit-tiny-p16', DEIT), ('vit-tiny-p16', VIT_TINY)]
)
def test_tables_are_of_the_results(backbone, table):
    rows = pd.read_csv(RESULTS)
    for kind, side, accuracy in table:
        way = dict(method=kind['method'] or 'none', img_size=side)
        way.update(keep_rate=kind['keep_rate'], row='three crops', count=3)
        way.update(reading=READ[kind['out_type']], classifier='ridge 0.1')
        own = select(rows, dict(way, backbone=backbone))
        found = own.loc[:, 'coffee5':'strawberry5'].mean(axis=None)
        assert accuracy == pytest.approx(found, abs=0.051), way


@pytest.mark.parametrize(
    'pixels, budget, chosen',
    [
        ('imagenet', None, 'ATC, keep rate 0.5, 224 px'),
        ('imagenet', '0.42GMACs', 'DiffRate, keep rate 0.5, 192 px'),
        ('imagenet', BEST, 'full ViT, 224 px'),
        ('half', None, 'DiffRate, keep rate 0.5, 224 px'),
    ],
)
def test_what_is_chosen(pixels, budget, chosen):
    pretrained = Pretrained('tiny', 'tiny.pth', TINY, PIXELS[pixels], ())
    found = choose_model(pretrained, 40, budget, None, 'cpu')
    assert describe(found) == chosen
    assert found.layers == (None if found.method else (*range(12),))


def photographs(*counts, groups=None):
    labels = [i for i, n in enumerate(counts) for _ in range(n)]
    paths = [f'{n}.jpg' for n in range(len(labels))]
    classes = [f'class {i}' for i in range(len(counts))]
    return LabeledImages(
        paths, labels, classes, groups, [''] * len(paths), '.'
    )


def test_a_fifth_of_each_class():
    found = photographs(10, 5, 1)
    train, held_out = hold_out(found)
    assert sorted(train + held_out) == [*range(16)]
    assert [found.labels[i] for i in held_out].count(0) == 2
    assert [found.labels[i] for i in held_out].count(1) == 1
    assert 15 in train  # the only one of its class


def test_groups_are_not_parted():
    groups = ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd']
    train, held_out = hold_out(photographs(4, 4, groups=groups))
    assert held_out
    assert not {groups[i] for i in train} & {groups[i] for i in held_out}


@pytest.mark.parametrize(
    'counts, accuracy, why',
    [
        ((100, 100), 0.99, ''),
        ((100, 99), 0.85, 'above 85% accuracy with fewer than 200'),
        ((100, 99), 0.84, ''),
        ((8,) * 25, 0.9, ''),
        ((7,) * 30, 0.1, 'median class has 7 photos'),
        ((300, 3, 3), 0.1, 'median class has 3 photos'),
    ],
)
def test_when_it_is_trained(counts, accuracy, why):
    found = why_skipped(counts, accuracy)
    assert why in found and bool(why) is bool(found)


def test_a_group_counts_once():
    groups = [f'plant {i // 2}' for i in range(400)]
    assert photos_per_class(photographs(200, 200, groups=groups)) == [100, 100]
