# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import re

import pandas as pd
import pytest
from sweep_results import result, seeds

from mmclca.sweep.missing import MissingResultsError
from mmclca.sweep.report import summarize, to_table
from mmclca.sweep.table_1 import other_table, paper_table, write_table_1
from mmclca.sweep.text_table import TextTable, escape, to_latex, to_markdown

QUOTED = """
ViT          52.5 67.0 40.6  78.5
DeiT         54.2 69.5 45.3  78.5
TransFG      54.6 72.2 21.2 447.9
SIM-Trans    54.6 34.8 70.7  81.8
CSDNet       57.9 75.4 56.3  78.5
CLCA (10 %)  55.6 87.4 61.1  25.2
CLCA (70 %)  67.8 88.3 58.2  50.9
"""
VIT = dict(backbone='vit-base-p16', size=448)
DEIT3 = dict(backbone='deit3-base-p16', size=448)


def paper(results):
    return paper_table(summarize(to_table(results)))


def other(results):
    return other_table(summarize(to_table(results)))


def rows(table):
    return table.cells.to_numpy().tolist()


def row(table, name):
    return next(row for row in rows(table) if row[0] == name)


def clca(accuracy, keep_rate, dataset='cotton80', **more):
    more = {**DEIT3, 'gmacs': 25.0, **more}
    return result(
        accuracy, keep_rate=keep_rate, dataset=dataset, clca='clca', **more
    )


@pytest.fixture
def base():
    """The plain ViT on a data set of the paper."""
    return seeds(
        50.0, 53.0, dataset='cotton80', keep_rate=1, gmacs=78.5, **VIT
    )


def test_quoted_numbers_have_columns_of_their_own(base):
    table = paper(base)
    lines = QUOTED.strip().splitlines()
    quoted = [line.rsplit(maxsplit=4) for line in lines]
    assert [[row[0], *row[5:]] for row in rows(table)] == quoted
    assert [group for group, _ in table.cells] == [
        '',
        *['ours'] * 4,
        *['quoted'] * 4,
    ]
    assert [title for _, title in table.cells.columns[5:]] == [
        'Cotton80',
        'SoyAgeing',
        'SoyGlobal',
        'GFLOPs',
    ]
    assert any('CLCA paper' in note for note in table.notes)


def test_own_means_and_dashes(base):
    table = paper(base)
    assert row(table, 'ViT')[1:5] == ['51.5 ± 2.1', '–', '–', '78.50']
    assert row(table, 'DeiT')[1:5] == ['–'] * 4
    assert row(table, 'TransFG')[1:5] == ['–'] * 4
    assert row(table, 'CLCA (10 %)')[1:5] == ['–'] * 4
    assert '2 seeds' in table.caption


def test_deit_is_another_row(base):
    deit = result(
        60.0,
        dataset='soyglobal',
        backbone='deit-base-p16',
        size=448,
        keep_rate=1.0,
        gmacs=80.0,
    )
    table = paper([*base, deit])
    assert row(table, 'DeiT')[1:5] == ['–', '–', '60.0', '80.00']
    assert '1-2 seeds' in table.caption


@pytest.mark.parametrize(
    'changed',
    [
        dict(size=224),
        dict(keep_rate=0.7),
        dict(clca='cla'),
        dict(variant='slow'),
        dict(backbone='vit-augreg-base-p16'),
        dict(dataset='soygene'),
        dict(method='SiT'),  # its keep rate 1 is another model
    ],
)
def test_cells_that_are_not_of_the_row(base, changed):
    stranger = {**VIT, 'dataset': 'soyageing', 'keep_rate': 1, **changed}
    table = paper([*base, result(99.0, **stranger)])
    assert row(table, 'ViT')[1:4] == ['51.5 ± 2.1', '–', '–']


def test_methods_that_reduce_nothing_are_not_counted_twice(base):
    more = dict(dataset='cotton80', keep_rate=1, gmacs=78.5, **VIT)
    table = paper([*base, *seeds(90.0, 93.0, method='ToMe', **more)])
    assert row(table, 'ViT')[1] == '51.5 ± 2.1'
    alone = paper(seeds(90.0, 93.0, method='ToMe', **more))
    assert row(alone, 'ViT')[1] == '91.5 ± 2.1'


def test_the_method_that_reduces_nothing_may_differ_by_data_set():
    own = [
        *seeds(50.0, dataset='cotton80', keep_rate=1, method='ToMe', **VIT),
        *seeds(70.0, dataset='soyageing', keep_rate=1, **VIT),
        *seeds(71.0, dataset='soyageing', keep_rate=1, method='TopK', **VIT),
    ]
    cells = row(paper(own), 'ViT')
    assert '50.0' in cells and '70.0' in cells and '71.0' not in cells


def test_clca_rows_are_of_the_best_backbone_of_both():
    table = paper(
        [
            clca(50.0, 0.1, gmacs=25.0),
            clca(70.0, 0.7, gmacs=51.0),
            clca(62.0, 0.1, backbone='mae-base-p16'),  # best at 10 % only
            clca(56.0, 0.7, backbone='mae-base-p16'),
        ]
    )
    assert row(table, 'CLCA (10 %)')[1:5] == ['50.0', '–', '–', '25.00']
    assert row(table, 'CLCA (70 %)')[1:5] == ['70.0', '–', '–', '51.00']
    assert any('deit3-base-p16' in note for note in table.notes)
    assert not any('mae' in note for note in table.notes)


def test_a_backbone_with_few_cells_is_not_the_best():
    table = paper(
        [
            clca(50.0, 0.1),
            clca(60.0, 0.1, 'soyageing', gmacs=27.0),
            clca(90.0, 0.1, 'soyageing', backbone='mae-base-p16'),
        ]
    )
    assert row(table, 'CLCA (10 %)')[1:5] == ['50.0', '60.0', '–', '26.00']


def test_other_keep_rates_do_not_decide_on_the_backbone():
    table = paper([clca(50.0, 0.1), clca(99.0, 0.5, backbone='mae-base-p16')])
    assert any('deit3-base-p16' in note for note in table.notes)


def test_nothing_of_table_1():
    with pytest.raises(MissingResultsError, match='448 px of cotton80'):
        paper([result(dataset='cotton80', size=224), result()])


def test_other_data_sets():
    results = [
        *seeds(90.0, 92.0, keep_rate=1, gmacs=1.26),
        *seeds(85.0, 88.0, keep_rate=0.1, clca='clca', gmacs=0.4),
        *seeds(86.0, 88.0, keep_rate=0.5, clca='clca', gmacs=0.8),
        result(70.0, keep_rate=0.1),  # without CLCA
        result(71.0, keep_rate=0.1, clca='clca', method='SiT'),
        result(60.0, dataset='soygene', keep_rate=0.1, clca='clca', **VIT),
        result(61.0, dataset='cotton80', keep_rate=0.1, clca='clca', **VIT),
    ]
    table = other(results)
    assert list(table.cells) == [
        *('backbone', 'px', 'method', 'leaf40', 'SoyGene', 'GMACs')
    ]
    tiny = ['deit-tiny-p16', '224']
    assert rows(table) == [
        [*tiny, 'no reduction', '91.0 ± 1.4', '–', '1.26'],
        [*tiny, 'CLCA (10 %)', '86.5 ± 2.1', '–', '0.40'],
        [*tiny, 'CLCA (50 %)', '87.0 ± 1.4', '–', '0.80'],
        ['vit-base-p16', '448', 'CLCA (10 %)', '–', '60.0', '0.50'],
    ]
    with pytest.raises(MissingResultsError, match='other data sets'):
        other([result(dataset='cotton80', keep_rate=1)])


def test_files_and_what_is_left_out(base, tmp_path):
    with pytest.warns(UserWarning, match='no table_1_others') as record:
        paths = write_table_1(base, tmp_path / 'new')
    assert [w.filename for w in record] == [__file__]
    assert [path.name for path in paths] == ['table_1.md', 'table_1.tex']
    assert '51.5 ± 2.1' in paths[0].read_text('utf-8')
    assert r'51.5 $\pm$ 2.1' in paths[1].read_text('utf-8')


def test_markdown(base):
    lines = to_markdown(paper(base)).splitlines()
    grid = [line for line in lines if line.startswith('|')]
    rows = [[c.strip() for c in line.strip('|').split('|')] for line in grid]
    assert (
        rows[0][1] == 'Cotton80 (ours)' and rows[0][5] == 'Cotton80 (quoted)'
    )
    assert rows[2] == row(paper(base), 'ViT')
    assert len(grid) == 2 + 7 and {len(row) for row in rows} == {9}


def test_latex(base):
    text = to_latex(paper(base))
    body = text[text.index(r'\midrule') : text.index(r'\bottomrule')]
    rows = body.strip().splitlines()[1:]
    assert len(rows) == 7
    assert {len(re.findall(r'(?<!\\)&', row)) for row in rows} == {8}
    assert all(row.endswith(r' \\') for row in rows)
    assert r'\begin{tabular}{lrrrrrrrr}' in text
    assert (
        r' & \multicolumn{4}{c}{ours} & '
        r'\multicolumn{4}{c}{quoted} \\' in text
    )
    assert r'\cmidrule(lr){2-5} \cmidrule(lr){6-9}' in text
    assert r'CLCA (10 \%) & -- & -- & -- & -- & 55.6' in text
    check_latex(text)


def test_latex_of_marks_that_it_reads_as_commands():
    text = to_latex(
        TextTable(
            '100 % & more_or_{less}',
            pd.DataFrame([['a_b ~ ^', '\\x']], columns=['#1', '$']),
            ['n & m'],
        )
    )
    check_latex(text)
    assert r'\caption{100 \% \& more\_or\_\{less\} n \& m}' in text
    assert r'\#1 & \$ \\' in text
    assert (
        r'a\_b \textasciitilde{} \textasciicircum{} & \textbackslash{}x \\'
        in text
    )
    assert escape('50 ± 1 –') == r'50 $\pm$ 1 --'


def check_latex(text):
    """Environments nest, braces close, ASCII only, dollars in pairs."""
    opened = []
    for kind, name in re.findall(r'\\(begin|end)\{(.+?)\}', text):
        if kind == 'begin':
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    bare = re.sub(r'\\[{}%&$#_]', '', text)
    depth = 0
    for letter in bare:
        depth += (letter == '{') - (letter == '}')
        assert depth >= 0
    assert depth == 0
    assert bare.count('$') % 2 == 0
    assert not set('%#_~^') & set(bare) and text.isascii()
