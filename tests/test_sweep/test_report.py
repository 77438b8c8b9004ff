# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Sweep tables, computed by hand."""

import math

import pandas as pd
import pytest
from sweep_results import result, seeds
from tables import read_sweep
from tiny_run import ROOT

from mmclca.sweep.report import (
    compute_gains,
    gains_to_markdown,
    summarize,
    summary_to_markdown,
    to_table,
    write_tables,
)


def cells_of(text):
    """Cells of a Markdown table, one list per row."""
    rows = [line.strip('|').split('|') for line in text.splitlines()]
    return [
        [cell.strip() for cell in row] for row in rows if '--' not in row[0]
    ]


def test_table_has_one_row_per_run():
    table = to_table([result(seed=2, gradients=(8.0, 3.0, 1.0))])
    (row,) = table.to_dict('records')
    expected = dict(backbone='deit-tiny-p16', keep_rate=0.25, seed=2)
    expected |= dict(train_images_per_s=31.0, test_images_per_s=95.0)
    expected |= dict(accuracy=80.0, max_gradient=8.0, mean_gradient=4.0)
    expected |= dict(commit='189de4f', torch='2.15.0')
    assert expected.items() <= row.items()


def test_table_order_is_independent_of_result_order():
    results = read_sweep(ROOT / 'docs/results/leaf40.csv')
    table = to_table(results)
    pd.testing.assert_frame_equal(table, to_table(results[::-1]))
    evit = table[table.method == 'EViT']
    assert evit.keep_rate.is_monotonic_decreasing
    kinds = [k for k in ('base', 'cla', 'clc', 'clca') for _ in '123']
    assert list(evit.clca) == kinds * 4 and list(evit.seed) == [1, 2, 3] * 16


def test_table_cells_are_empty_if_not_measured():
    alone = result(memory=None, seed=1)
    alone['gradients'] = {}
    table = to_table([alone, result(memory=100.0, seed=2)])
    for name in ('peak_memory_mb', 'max_gradient', 'mean_gradient'):
        assert table[name].isna().tolist() == [True, False]
    _, row = cells_of(summary_to_markdown(summarize(to_table([alone]))))
    assert 'nan' not in row and row.count('') == 2


def test_summary_averages_over_seeds():
    results = [
        result(80.0, seed=1, gmacs=1.0, seconds=100.0, memory=10.0),
        result(83.0, seed=2, gmacs=2.0, seconds=200.0, memory=20.0),
        result(89.0, seed=3, gmacs=6.0, seconds=600.0, memory=60.0),
        result(70.0, seed=1, clca='clca'),
    ]
    base, clca = summarize(to_table(results)).to_dict('records')
    assert (base['seeds'], base['accuracy']) == (3, 84.0)
    assert base['accuracy_std'] == pytest.approx(math.sqrt(42 / 2))
    assert (base['gmacs'], base['seconds']) == (3.0, 300.0)
    assert (base['peak_memory_mb'], base['params']) == (30.0, 5540000)
    assert (clca['seeds'], clca['accuracy']) == (1, 70.0)
    assert math.isnan(clca['accuracy_std'])
    names = ('dataset', 'backbone', 'method', 'clca', 'variant')
    others = [result(90.0, **{name: 'clca'}) for name in names]
    others += [result(90.0, keep_rate=0.1), result(90.0, size=448)]
    assert len(summarize(to_table([result(80.0), *others]))) == 8


def test_summary_markdown_cells():
    results = [*seeds(88.0, 89.0, 91.0), result(70.0, clca='cla')]
    text = summary_to_markdown(summarize(to_table(results)))
    titles, base, cla = cells_of(text)
    assert titles[:8] == [
        *('data set', 'backbone', 'method', 'px', 'keep rate', 'CLCA'),
        *('top-1 (%)', 'GMACs'),
    ]
    assert base == [
        *('leaf40', 'deit-tiny-p16', 'EViT', '224', '0.25', 'base'),
        *('89.3 ± 1.5 (3)', '0.500', '5.54', '31.0', '95.0', '1503'),
        *('4', '3.9'),
    ]
    assert cla[5:7] == ['+CLA', '70.0 (1)']


def test_gains_are_paired_by_seed():
    table = to_table(
        [
            *seeds(80.0, 84.0, 60.0, gradients=(4.0, 2.0)),
            *seeds(86.0, 88.0, clca='clca', gradients=(3.0, 1.0)),
            *seeds(79.0, clca='cla', gradients=(8.0, 1.0)),
            *seeds(99.0, clca='clc', keep_rate=0.5),  # has no base
            result(99.0, clca='clc', seed=4),
        ]
    )
    gained = compute_gains(table).set_index('clca')
    assert gained.gain.to_dict() == {'cla': -1.0, 'clca': 5.0}
    assert gained.seeds.to_dict() == {'cla': 1, 'clca': 2}
    assert gained.gain_std.clca == pytest.approx(2**0.5)
    assert gained.gain_std.isna().cla
    assert gained.gradient_ratio.to_dict() == {'cla': 2.0, 'clca': 0.75}
    titles, row = cells_of(gains_to_markdown(compute_gains(table)))
    assert titles[5:] == ['+CLA', 'CLCA', 'gradient, +CLA', 'gradient, CLCA']
    assert row[5:] == ['-1.0 (1)', '5.0 ± 1.4 (2)', '2.00', '0.75']


@pytest.mark.parametrize('variant', ['', 'slow'])
def test_variant_column_is_shown_if_needed(variant):
    cells = [result(variant=variant, clca=clca) for clca in ('base', 'cla')]
    table = to_table(cells)
    for text in (
        summary_to_markdown(summarize(table)),
        gains_to_markdown(compute_gains(table)),
    ):
        assert ('variant' in text) == ('slow' in text) == bool(variant)


def test_write_tables_writes_csv_and_markdown(tmp_path):
    results = [*seeds(90.0, 92.0), *seeds(93.0, clca='cla')]
    folder = tmp_path / 'new' / 'report'
    paths = write_tables(results, folder)
    assert [path.name for path in paths] == [
        *('runs.csv', 'summary.csv', 'summary.md', 'gains.csv', 'gains.md')
    ]
    assert sorted(folder.iterdir()) == sorted(paths)
    runs = to_table(results)
    read = pd.read_csv(paths[0], keep_default_na=False)
    pd.testing.assert_frame_equal(read, runs)
    summary = pd.read_csv(paths[1])
    assert summary.accuracy.tolist() == summarize(runs).accuracy.tolist()
    assert '91.0 ± 1.4 (2)' in paths[2].read_text('utf-8')
    assert len(write_tables([result()], tmp_path / 'other')) == 3


@pytest.mark.parametrize(
    'results, term', [([], 'no results'), ([result()] * 2, 'duplicate')]
)
def test_table_is_refused_if_results_are_missing_or_doubled(results, term):
    with pytest.raises(ValueError, match=term):
        to_table(results)
