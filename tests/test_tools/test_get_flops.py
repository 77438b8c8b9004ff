# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json

import pytest

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


def test_shape_and_options(config, count):
    wide = count(config, '--shape', 64, 96)
    assert wide['tokens'][0] == 26
    square = count(config, '--shape', 96)
    assert square['shape'] == [96, 96]
    option = 'model.backbone.reducer.keep_rate=1.0'
    whole = count(config, '--cfg-options', option)
    assert whole['tokens'][3] == 18
