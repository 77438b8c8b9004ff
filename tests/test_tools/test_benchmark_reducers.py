# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import runpy
import sys
from statistics import median

import pytest
import torch
from tiny_run import ROOT

from mmclca.utils.flops import count_config

TOOL = ROOT / 'tools/benchmark/reducers.py'
QUICK = ('--arch', 'deit-tiny', '--img-size', '64', '--batch', '2')


@pytest.fixture
def tool(monkeypatch):
    """The functions of the tool, with its command line as given."""
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)

    def load(*arguments):
        argv = ['reducers.py', *map(str, arguments)]
        monkeypatch.setattr(sys, 'argv', argv)
        return runpy.run_path(str(TOOL))

    return load


def cells(line):
    return [cell.strip() for cell in line.strip('|').split('|')]


def test_page(tool, tmp_path, capsys):
    page = tmp_path / 'new' / 'page.md'
    chosen = ('--methods', 'none', 'ATS', 'KMedoids')
    options = (*chosen, '--keep-rates', 0.5, 0.25, '--rounds', 1)
    tool(*QUICK, *options, '--out', page)['main']()
    text = page.read_text()
    table = [line for line in text.splitlines() if line.startswith('|')]
    assert all(line in capsys.readouterr().out for line in table[:1])
    assert len({line.count('|') for line in table}) == 1
    rows = [cells(line) for line in table[2:]]
    assert [row[:3] for row in rows] == [
        ['none', '1', 'no'],
        ['none', '1', 'yes'],
        *(
            [method, rate, clca]
            for method in ('ATS', 'KMedoids')
            for rate in ('0.5', '0.25')
            for clca in ('no', 'yes')
        ),
    ]
    assert rows[0][5] == '17/17/17/17'
    assert rows[1][5] == '18/24/30/38'
    assert rows[-2][5] == '5/2/2/2'
    assert [bool(row[4]) for row in rows] == [False] * 6 + [True] * 4
    assert all(float(row[6]) > 0 and float(row[7]) > 0 for row in rows)
    assert '`deit-tiny`, patches of 16 px, images of 64 px, batch 2' in text
    assert 'reducers.py --arch deit-tiny' in text


def test_speeds_and_ratios(tool, monkeypatch):
    """Against timm round by round, not median against median."""
    measure = tool()['measure']
    arguments = (*QUICK, '--methods', 'TopK', '--keep-rates', '0.5')
    args = tool(*arguments)['parse_args']()
    seen = {}

    def seconds_in_turns(models, inputs, rounds, amp):
        seen.update(models=models, shape=inputs.shape, rounds=rounds, amp=amp)
        return {
            'timm': [2.0, 4.0, 9.0],
            (0.5, False): [1.0, 4.0, 3.0],
            (0.5, True): [4.0, 8.0, 9.0],
        }

    scope = measure.__globals__
    monkeypatch.setitem(scope, 'seconds_in_turns', seconds_in_turns)
    base, clca = measure(args, 'TopK')
    assert (base.ratio, clca.ratio) == (median([2, 1, 3]), 0.5)
    assert (base.images_per_second, clca.images_per_second) == (2 / 3, 0.25)
    assert (base.memory, base.clca, clca.clca) == (None, False, True)
    assert seen['shape'] == (2, 3, 64, 64)
    assert (seen['rounds'], seen['amp']) == (5, None)
    assert list(seen['models']) == [(0.5, False), (0.5, True), 'timm']


@pytest.mark.parametrize('arch', ['deit-small', 'base', 'large'])
def test_timm_is_of_the_same_size(tool, arch):
    functions = tool()
    with torch.device('meta'):
        model = functions['timm_vit'](arch, 224)
    config = functions['classifier'](arch, 224, 'none', 1.0, False)
    params = sum(param.numel() for param in model.parameters())
    assert params == count_config(config).params
    assert functions['reduce_at'](arch) == (
        (6, 12, 18) if arch == 'large' else (3, 6, 9)
    )


@pytest.mark.parametrize(
    'options, message',
    [
        (['--img-size', '100'], '--img-size 100: a multiple of 16'),
        (['--batch', '0'], 'argument --batch: 0: at least 1'),
        (['--keep-rates', '0.5', '2'], 'argument --keep-rates: 2: above 0'),
        (['--methods', 'Topk'], "invalid choice: 'Topk'"),
        (['--arch', 'b16'], "invalid choice: 'b16'"),
        (['--device', 'nowhere'], '--device nowhere: '),
        (['--out', '.'], '--out .: '),
    ],
)
def test_refused_before_anything_is_measured(tool, options, message, capsys):
    with pytest.raises(SystemExit):
        tool(*options)['parse_args']()
    assert message in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
def test_memory_on_a_gpu(tool, capsys):
    options = ('--methods', 'TopK', '--keep-rates', 1, 0.25, '--amp', 'bf16')
    tool(*options, '--device', 'cuda', '--batch', 64)['main']()
    lines = capsys.readouterr().out.splitlines()
    table = [cells(line) for line in lines if line.startswith('|')]
    assert table[0][-1] == 'MiB'
    whole, _, reduced, _ = (int(row[-1]) for row in table[2:])
    assert 0 < reduced <= whole
