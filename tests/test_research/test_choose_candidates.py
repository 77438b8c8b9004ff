# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Candidates and report from the rows of the study."""

import choose_candidates
import numpy as np
import pandas as pd
import pytest
from study import page_values
from study.choice import MAX_LOSS
from study.losses import REDUCED, Losses
from study.rows import SIMILARITIES

NAMES = ('some', 'other', 'third')
FULL = dict(
    network='vit_tiny',
    method='none',
    keep_rate=1.0,
    img_size=224,
    depth=12,
    features='all layers',
    classifier='ridge',
    count=3,
    gmacs=1.25,
    untrained=0,
    random=0,
    license='Apache-2.0',
    difference=0.0,
    agreement=100.0,
)


def row(accuracies, **changes):
    """Return a row with the accuracy per dataset."""
    values = FULL | changes | dict(zip(NAMES, accuracies, strict=True))
    return values | dict(mean=np.mean(accuracies))


@pytest.fixture
def rows(monkeypatch):
    """Rows of full networks, two reducers and a CNN."""
    monkeypatch.setitem(page_values.GRID, 'datasets', NAMES)
    monkeypatch.setitem(page_values.GRID, 'budgets', (0.1, 0.63))
    half = dict(keep_rate=0.5, gmacs=0.62)
    cnn = dict(network='mobileone_s0', img_size=256, gmacs=0.36)
    table = pd.DataFrame(
        [
            row([80, 80, 80]),
            row([70, 70, 70], features='last layer'),
            row([82, 82, 82], network='deit_tiny'),
            row([76, 76, 76], network='deit_tiny', features='last layer'),
            row([90, 85, 65], method='ATC', **half),
            row([72, 73, 74], method='ToMe', **half, difference=-7),
            row([99, 99, 99], method='SiT', **half, untrained=1),
            row([77, 76, 75], **cnn, license='research only'),
        ]
    )
    similar = {f'{x}_{y}': 0.9 for x in SIMILARITIES for y in REDUCED}
    return page_values.Report(table.assign(**similar))


def add_row(rows, added):
    """Return a report with one more row."""
    table = pd.concat([rows.table, pd.DataFrame([added])], ignore_index=True)
    return page_values.Report(table)


def test_users_classifiers_exclude_standard_deviations_and_fit(rows):
    cnn = dict(network='mobileone_s0', img_size=256, classifier='fit')
    users = add_row(rows, row([88, 88, 88], **cnn)).find_users()
    assert users.loc['vit_tiny'].tolist() == [70, 70, 70]
    assert users.loc['mobileone_s0'].tolist() == [77, 76, 75]


def test_rule_excludes_networks_that_lose_much_on_a_dataset(rows):
    groups = rows.get_groups(rows.usable)
    free, strict = (
        [*choose_candidates.list_candidates(rows, groups['any'], x)][-1]
        for x in (np.inf, MAX_LOSS)
    )
    assert free['network'] == 'ViT-Tiny, ATC 0.5'
    assert strict['network'] == 'MobileOne-S0, 256 px'
    licensed = choose_candidates.list_candidates(
        rows, groups['any, free license'], MAX_LOSS
    )
    assert [*licensed][-1]['network'] == 'ViT-Tiny, ToMe 0.5'


def test_choice_skips_budgets_below_all_networks(rows):
    assert {x['budget'] for x in rows.choose(rows.usable)} == {0.63}


def test_untrained_methods_are_listed_but_never_chosen(rows):
    assert 'SiT' in [x['method'] for x in rows.list_methods(0.5)]
    assert Losses(rows).find_best(0.5).method == 'ATC'
    assert 'SiT' not in [x['row'].method for x in rows.choose(rows.usable)]


def test_best_reducer_is_compared_with_the_full_network_at_its_cost(rows):
    small = row([81, 80, 60], img_size=160, gmacs=0.6, difference=-5.0)
    losses = Losses(add_row(rows, small))
    ((best, rival, gain),) = losses.compare_best(0.5)
    assert best.method == 'ATC' and rival.img_size == 160
    assert gain['mean'] == pytest.approx(19 / 3)  # 9, 5 and 5
    summary = losses.summarize(0.5, 'vit_tiny')
    assert summary['count'] == 2 and summary['num_better'] == 1
    assert summary['smallest'] == 0 and summary['largest'] == -7


def test_methods_that_keep_more_tokens_are_left_out_below_one_half(rows):
    quarter = rows.table.assign(keep_rate=0.25)
    table = pd.concat([rows.table, quarter], ignore_index=True)
    losses = Losses(page_values.Report(table))
    counts = [losses.summarize(x, 'vit_tiny')['count'] for x in (0.5, 0.25)]
    assert counts == [2, 1]  # ATC and ToMe, ATC


def test_missing_networks_are_counted_by_group(rows):
    missing = rows.count_missing()
    assert missing['full ViTs'] == 2 * len(page_values.GRID['img_sizes'])
    assert missing['keep rate 0.25'] == 30


def test_command_prints_the_rule_and_the_networks(rows, monkeypatch, capsys):
    monkeypatch.setattr(page_values.Report, 'read', lambda: rows)
    monkeypatch.setattr('sys.argv', ['choose_candidates.py'])
    choose_candidates.main()
    printed = capsys.readouterr().out
    assert 'ridge, any, free license, loss of at most 4 points' in printed
    assert 'fit, any, loss of at most 4 points\nnot measured' in printed
    names = '2 x MobileOne-S0, 256 px, 1 x ViT-Tiny, ATC 0.5'
    assert names in printed
    assert 'Not measured yet' in printed
