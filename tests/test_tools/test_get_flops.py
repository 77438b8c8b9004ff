# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json

import pytest
from tiny_run import ROOT, run_tool

TOOL = ROOT / 'tools/analysis_tools/get_flops.py'
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
def run(monkeypatch, capsys):
    """Run the tool and return its output."""

    def run(*arguments):
        run_tool(monkeypatch, TOOL, *arguments)
        return capsys.readouterr().out

    return run


def test_json_is_the_only_line_on_stdout(config, run, monkeypatch):
    monkeypatch.setenv('MMCLCA_DATA', 'elsewhere')  # mmengine logs its use
    printed = run(config, '--json')
    assert printed.count('\n') == 1
    cost = json.loads(printed)
    assert type(cost['flops']) is type(cost['params']) is int
    assert cost['tokens'] == TOKENS
    assert cost['shape'] == [64, 64]


def test_shape_and_options(config, run):
    wide = json.loads(run(config, '--json', '--shape', 64, 96))
    assert wide['tokens'][0] == 26
    square = json.loads(run(config, '--json', '--shape', 96))
    assert square['shape'] == [96, 96]
    option = 'model.backbone.reducer.keep_rate=1.0'
    whole = json.loads(run(config, '--json', '--cfg-options', option))
    assert whole['tokens'][3] == 18
