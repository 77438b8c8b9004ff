# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

import pytest
from sweep_results import result, seeds, sweep, write_results
from tiny_run import ROOT, run_tool

from mmclca.cli.commands import plot_sweep

TOOL = ROOT / 'tools/analysis_tools/plot_sweep.py'


@pytest.fixture
def plot(monkeypatch, tmp_path, capsys):
    """Runs the tool in this process; returns what it says and printed."""

    def plot(*arguments):
        run_tool(monkeypatch, TOOL, *arguments, '--out', tmp_path / 'out')
        said = capsys.readouterr()
        return said.out.splitlines(), said.err

    return plot


@pytest.fixture
def folder(tmp_path):
    return write_results(tmp_path / 'results', sweep())


def test_paths_are_printed_and_what_is_missing_is_said(plot, folder, tmp_path):
    printed, said = plot(folder)
    assert printed == [
        str(tmp_path / 'out' / name)
        for name in (
            *('table_1_others.md', 'table_1_others.tex'),
            *('accuracy_gmacs.pdf', 'accuracy_gmacs.png'),
            *('methods.pdf', 'methods.png', 'gradients.pdf', 'gradients.png'),
        )
    ]
    assert {str(path) for path in (tmp_path / 'out').iterdir()} == set(printed)
    assert said.startswith('no table_1, results are missing: ')
    assert said.count('\n') == 1  # without the line that warned


def test_folders_are_one(plot, tmp_path):
    results = [result(keep_rate=1)]
    folder = write_results(tmp_path / 'results', results)
    vit = dict(dataset='cotton80', backbone='vit-base-p16', size=448)
    more = seeds(50.0, 53.0, keep_rate=1, gmacs=78.5, **vit)
    printed, said = plot(folder, write_results(tmp_path / 'more', more))
    assert 'no table_1' not in said
    assert [path.rpartition('/')[2] for path in printed] == [
        *('table_1.md', 'table_1.tex'),
        *('table_1_others.md', 'table_1_others.tex'),
    ]
    text = (tmp_path / 'out' / 'table_1.md').read_text('utf-8')
    assert '51.5 ± 2.1' in text and '67.0' in text


@pytest.mark.parametrize(
    ('choices', 'chosen'),
    [
        ({}, [1, 2, 3, 4, 5]),
        (dict(dataset=['leaf40']), [1, 2, 3, 4]),
        (dict(dataset=['leaf40', 'soygene']), [1, 2, 3, 4, 5]),
        (dict(backbone=['vit-tiny-p16']), [2]),
        (dict(variant=['slow']), [3]),
        (dict(variant=[''], method=['EViT']), [2, 4, 5]),
        (dict(keep_rate=[0.7, 1.0], dataset=['leaf40']), [1, 2, 3, 4]),
        (dict(keep_rate=[0.7]), [4]),
    ],
)
def test_choices(choices, chosen):
    results = [
        result(seed=1, keep_rate=1, method='SiT'),
        result(seed=2, keep_rate=1.0, backbone='vit-tiny-p16'),
        result(seed=3, keep_rate=1, variant='slow'),
        result(seed=4, keep_rate=0.7),
        result(seed=5, dataset='soygene'),
    ]
    choose = plot_sweep.choose
    left = [content['cell']['seed'] for content in choose(results, **choices)]
    assert left == chosen


def test_options_choose(plot, folder, tmp_path):
    words = '--dataset leaf40 --backbone deit-tiny-p16 --method EViT'
    rate = '--variant', '', '--keep-rate', '1'
    printed, said = plot(folder, *words.split(), *rate)
    text = (tmp_path / 'out' / 'table_1_others.md').read_text('utf-8')
    assert 'CLCA (100 %)' in text and 'CLCA (25 %)' not in text
    assert 'no methods' in said and 'no accuracy_gmacs' not in said
    assert len(printed) == 6


def test_choices_that_nothing_has(plot, folder):
    with pytest.raises(SystemExit) as error:
        plot(folder, '--dataset', 'leaf4', '--keep-rate', '0.3', '1')
    assert str(error.value) == (
        "dataset: no result of 'leaf4'; there are 'leaf40'; "
        'keep_rate: no result of 0.3; there are 0.25, 1.0'
    )


def test_folders_that_cannot_be_drawn(plot, folder, tmp_path):
    with pytest.raises(SystemExit, match='nowhere'):
        plot(tmp_path / 'nowhere')
    with pytest.raises(SystemExit, match='no results: .*tools/sweep.py'):
        plot(write_results(tmp_path / 'empty', []))
    with pytest.raises(SystemExit, match='of 16 cell'):
        plot(folder, folder)
    assert not (tmp_path / 'out').exists()


def test_half_a_result_is_said_and_left_out(plot, tmp_path):
    folder = write_results(tmp_path / 'results', [result(keep_rate=1)])
    (folder / 'half.json').write_text('{"cell"')
    printed, said = plot(folder)
    assert str(folder / 'half.json') in said and len(printed) == 2
