# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
import re

import pytest

from mmclca.cli.commands.get_flops import table_lines
from mmclca.evaluation.cost import Cost

CONFIG = """
data_root = '{{$MMCLCA_DATA:data}}'
model = dict(
    type='mmclca.TokenReductionClassifier',
    backbone=dict(
        type='mmclca.TokenReductionViT',
        arch='deit-tiny',
        img_size=64,
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        reduce_at=(3, 6, 9),
        cache=dict(type='mmclca.CrossLayerCache'),
        out_indices=(3, 6, 9, 11),
        final_norm=False,
    ),
    head=dict(
        type='mmclca.CLAHead', num_classes=4, in_channels=192, num_layers=4
    ),
)
"""
TOKENS = [18, 18, 18, 11, 17, 17, 10, 16, 16, 10, 16, 18]


@pytest.fixture
def config(tmp_path):
    path = tmp_path / 'model_only.py'
    path.write_text(CONFIG)
    return path


@pytest.fixture
def count(run):
    """Run the tool with --json and return the cost."""
    tool = 'analysis_tools/get_flops.py'
    return lambda *words: json.loads(run(tool, *words, '--json').out)


def test_json_is_the_only_line_on_stdout(config, count, monkeypatch):
    monkeypatch.setenv('MMCLCA_DATA', 'elsewhere')  # mmengine logs its use
    cost = count(config)
    assert type(cost['flops']) is type(cost['params']) is int
    assert cost['tokens'] == TOKENS
    assert cost['shape'] == [64, 64]


def test_table_has_giga_macs_million_parameters_and_shares():
    cost = Cost((64, 96), 4_000_000_000, 5_500_000)
    cost.parts = dict(FFN=3_000_000_000, head=1_000_000_000)
    cost.attended, cost.tokens = [18, 9], [9, 9]
    cost.distances = 250_000_000
    text = '\n'.join(table_lines(cost))
    found = [*map(float, re.findall(r'\d+(?:\.\d+)?', text))]
    batch, layers = [1], [0, 18, 9, 1, 9, 9]
    totals = [4, 0.25, 5.5]
    assert found == [64, 96, *batch, *totals, 3, 75, 1, 25, *layers]


def test_shape_and_options(config, count):
    wide = count(config, '--shape', 64, 96)
    assert wide['tokens'][0] == 26
    square = count(config, '--shape', 96)
    assert square['shape'] == [96, 96]
    option = 'model.backbone.reducer.keep_rate=1.0'
    whole = count(config, '--cfg-options', option)
    assert whole['tokens'][3] == 18
