# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pandas as pd
import pytest
from sweep_results import result, seeds, sweep

from mmclca.sweep.report import summarize, to_markdown, to_table, write_report
from mmclca.utils.atomic_write import replace_file


def test_a_row_a_run():
    table = to_table([result(seed=2, gradients=(8.0, 3.0, 1.0))])
    assert table.to_dict('records') == [
        dict(
            dataset='leaf40',
            backbone='deit-tiny-p16',
            method='EViT',
            keep_rate=0.25,
            size=224,
            clca='base',
            variant='',
            seed=2,
            accuracy=80.0,
            gmacs=0.5,
            params=5540000,
            train_images_per_s=31.0,
            test_images_per_s=95.0,
            peak_memory_mb=1503.2,
            max_gradient=8.0,
            mean_gradient=4.0,
            seconds=231.0,
            started='2026-11-21T12:00:00+00:00',
            commit='189de4f',
            config_hash='0123456789abcdef',
            torch='2.15.0',
        )
    ]


def test_order_does_not_depend_on_that_of_the_results():
    results = sweep()
    table = to_table(results)
    pd.testing.assert_frame_equal(table, to_table(results[::-1]))
    evit = table[table.method == 'EViT']
    assert list(evit.keep_rate) == [1.0] * 4 + [0.25] * 8
    kinds = list(evit[evit.keep_rate == 0.25].clca)
    assert kinds == [k for k in ('base', 'cla', 'clc', 'clca') for _ in '12']
    assert list(evit.seed) == [1, 2] * 6


def test_what_a_run_did_not_measure_is_empty():
    alone = result(memory=None, seed=1)
    alone['gradients'] = {}
    table = to_table([alone, result(memory=100.0, seed=2)])
    assert table.peak_memory_mb.isna().tolist() == [True, False]
    assert table.max_gradient.isna().tolist() == [True, False]
    assert table.mean_gradient.isna().tolist() == [True, False]
    none = summarize(to_table([alone]))
    assert none.peak_memory_mb.isna().all()
    cells = [cell.strip() for cell in to_markdown(none).split('|')]
    assert 'nan' not in cells and cells.count('') > 1


def test_means_over_seeds():
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


@pytest.mark.parametrize(
    'other',
    [
        dict(dataset='cotton80'),
        dict(backbone='vit-base-p16'),
        dict(method='ToMe'),
        dict(keep_rate=0.1),
        dict(size=448),
        dict(clca='clca'),
        dict(variant='slow'),
    ],
)
def test_settings_are_not_mixed(other):
    results = [result(80.0), result(90.0, **other)]
    assert sorted(summarize(to_table(results)).accuracy) == [80.0, 90.0]


def test_markdown():
    results = [*seeds(88.0, 89.0, 91.0), result(70.0, clca='cla')]
    lines = to_markdown(summarize(to_table(results))).splitlines()
    rows = [[cell.strip() for cell in line.split('|')] for line in lines]
    assert rows[0][1:9] == [
        *('data set', 'backbone', 'method', 'px', 'keep rate', 'CLCA'),
        *('top-1 (%)', 'GMACs'),
    ]
    assert rows[2][1:-1] == [
        *('leaf40', 'deit-tiny-p16', 'EViT', '224', '0.25', 'base'),
        *('89.3 ± 1.5 (3)', '0.500', '5.54', '31.0', '95.0', '1503'),
        *('4', '3.9'),
    ]
    assert rows[3][6:8] == ['+CLA', '70.0 (1)']
    assert len(lines) == 4 and len({len(line) for line in lines}) == 1


def test_markdown_has_a_column_for_variants_where_there_are_any():
    plain, slow = result(), result(variant='slow')
    assert 'variant' not in to_markdown(summarize(to_table([plain])))
    assert 'slow' in to_markdown(summarize(to_table([plain, slow])))


def test_files(tmp_path):
    folder = tmp_path / 'new' / 'report'
    paths = write_report(sweep(), folder)
    assert [path.name for path in paths] == [
        *('runs.csv', 'runs.parquet', 'summary.csv', 'summary.md'),
        *('gains.csv', 'gains.md'),
    ]
    assert sorted(folder.iterdir()) == sorted(paths)  # nothing else is left
    runs = to_table(sweep())
    read = pd.read_csv(paths[0], keep_default_na=False)
    pd.testing.assert_frame_equal(read, runs)
    pd.testing.assert_frame_equal(pd.read_parquet(paths[1]), runs)
    summary = pd.read_csv(paths[2])
    assert summary.accuracy.tolist() == summarize(runs).accuracy.tolist()
    assert '91.0 ± 1.4 (2)' in paths[3].read_text('utf-8')


def test_the_deviation_of_one_seed_is_empty(tmp_path):
    _, _, summary, page = write_report([result()], tmp_path)
    assert pd.read_csv(summary).accuracy_std.isna().all()
    assert '80.0 (1)' in page.read_text('utf-8')


def test_a_file_stays_when_the_next_one_fails(tmp_path):
    path = tmp_path / 'runs.csv'
    path.write_text('old')

    def fail(partial):
        partial.write_text('ne')
        raise OSError('disk full')

    with pytest.raises(OSError, match='disk full'):
        replace_file(path, fail)
    assert path.read_text() == 'old'
    assert list(tmp_path.iterdir()) == [path]


def test_no_results():
    with pytest.raises(ValueError, match='no results: .*tools/sweep.py GRID'):
        to_table([])


def test_two_results_of_a_cell():
    with pytest.raises(ValueError, match='of 1 cell(?s:.)*ToMe'):
        to_table([result(), result(method='ToMe'), result(method='ToMe')])
