# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json
from functools import partial

import pytest
import torch
from mmcv import imread
from tiny_run import ROOT, load_tool

TOOL = ROOT / 'tools/benchmark/growth.py'
QUICK = ('--arch', 'deit-tiny', '--img-size', 64, 128, '--rounds', 1)


@pytest.fixture
def tool(monkeypatch):
    """The functions of the tool, with its command line as given."""
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)

    return partial(load_tool, monkeypatch, TOOL)


def test_page_csv_json_and_plot(tool, tmp_path, capsys):
    prefix = tmp_path / 'growth'
    tool(*QUICK, '--no-memory', '--warm-up', 1, '--out', prefix)['main']()
    text = prefix.with_suffix('.md').read_text()
    table, powers = (p for p in text.split('\n\n') if p.startswith('|'))
    assert table in capsys.readouterr().out
    assert 'MiB' not in text
    labels = ['timm', 'EViT 0.5', 'EViT 0.1 + CLCA']
    rows = [line.strip('| ').split(' | ') for line in table.splitlines()[2:]]
    assert [row[:2] for row in rows] == [
        [size, label] for size in ('64', '128') for label in labels
    ]
    shares = [float(row[-2].rstrip('%')) for row in rows]
    assert shares[0] < shares[3] and shares[1] < shares[4]
    assert powers.count('\n') == 4
    content = json.loads(prefix.with_suffix('.json').read_text())
    assert list(content['exponents']) == labels
    assert 0.95 < content['exponents']['timm']['gmacs'] < 1.05
    assert len(content['results']) == 6
    with prefix.with_suffix('.csv').open() as file:
        assert [row['label'] for row in csv.DictReader(file)] == labels * 2
    assert imread(str(prefix.with_suffix('.png'))).std() > 5


def test_at_no_extra_cost_memory_is_measured(tool):
    assert tool(*QUICK)['parse_args']().memory
    assert not tool(*QUICK, '--compile')['parse_args']().memory


@pytest.mark.slow
def test_memory_beside_the_weights(tool, tmp_path, capsys):
    prefix = tmp_path / 'growth'
    tool(*QUICK, '--batch', 8, '--out', prefix)['main']()
    content = json.loads(prefix.with_suffix('.json').read_text())
    for one in content['results']:
        weights = 4 * one['params'] / 2**20
        assert one['memory_mib'] - weights < one['features_mib'] + 1
    small, large = (content['results'][i]['features_mib'] for i in (0, 3))
    assert large > small
    assert 'features_mib' in content['exponents']['timm']


@pytest.mark.parametrize(
    'options, message',
    [
        (['--img-size', '224', '100'], '--img-size 100: a multiple of 16'),
        (['--img-size', '224', '224'], '--img-size: two sizes at least'),
        (['--arch', 'b16'], "invalid choice: 'b16'"),
        (['--device', 'nowhere'], '--device nowhere: '),
        (['--out', '/proc/x/y'], '--out: /proc/x/y.md: '),
        (['--compile', '--memory'], '--memory --compile default: on a CPU'),
    ],
)
def test_refused_before_anything_is_measured(tool, options, message, capsys):
    with pytest.raises(SystemExit):
        tool(*options)['parse_args']()
    assert message in capsys.readouterr().err
