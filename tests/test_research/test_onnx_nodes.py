# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Node times in exported models."""

import numpy as np
import onnx_nodes
import pytest
from installed import NEEDS_COMPILER
from onnx_nodes import Node
from PIL import Image
from tiny_photos import write_weights
from tiny_run import ROOT, run_tool


def make_run(start, slower):
    """Return events with two nodes in a loop."""
    nodes = [
        ('Conv', 0, 9, [1, 4, 2, 2]),
        ('LayerNormalization', 10, 5, [1, 5, 4]),
        ('Loop', 20, 20, [1, 4]),
        ('Add', 22, 3, [1, 4]),
        ('Add', 30, 3, [1, 4]),
        ('MatMul', 41, 7, [1, 5, 4]),
        ('LayerNormalization', 50, 5, [1, onnx_nodes.POOLED, 4]),
    ]
    events = [
        dict(
            name=f'{operator}_kernel_time',
            ts=start + time,
            dur=duration + slower * (operator != 'Loop'),
            args=dict(op_name=operator, output_type_shape=[dict(float=shape)]),
        )
        for operator, time, duration, shape in nodes
    ]
    return [dict(name='model_run', ts=start, dur=60), *events]


def test_nodes_have_least_time_of_runs_and_their_part(monkeypatch):
    monkeypatch.setattr(onnx_nodes, 'WARM_UP', 1)
    runs = make_run(0, -2), make_run(100, 2), make_run(200, 1)
    events = [dict(name='model_loading', ts=-5, dur=1)]
    events += [event for run in runs for event in run]
    assert onnx_nodes.read_nodes(events) == [
        Node('Conv', onnx_nodes.START, 10),
        Node('LayerNormalization', '5 tokens', 6),
        Node('Add', onnx_nodes.LOOP, 4),
        Node('Add', onnx_nodes.LOOP, 4),
        Node('MatMul', '5 tokens', 8),
        Node('LayerNormalization', onnx_nodes.HEAD, 6),
    ]


def test_tables_have_efficiency_and_sums(capsys):
    times = {1: {onnx_nodes.FULL: 20.0, 'ATC': 10.0}}
    onnx_nodes.print_efficiency(times, {onnx_nodes.FULL: 10, 'ATC': 4})
    assert (
        '| 1 | ATC | 10.00 | 2.00 | 2.50 | 0.800 |' in capsys.readouterr().out
    )
    nodes = dict(ATC=[Node('Add', 'loops', 2), Node('Add', 'patches', 3)])
    onnx_nodes.print_nodes(nodes, 'operator')
    onnx_nodes.print_nodes(nodes, 'part')
    rows = capsys.readouterr().out.splitlines()
    assert {'| Add | 2 | 5 |', '| loops | 1 | 2 |', '| all | 2 | 5 |'} < {
        *rows
    }


@NEEDS_COMPILER
@pytest.mark.slow
def test_exported_models_of_fit_are_profiled(tmp_path, monkeypatch, capsys):
    image = tmp_path / 'photo.png'
    Image.fromarray(np.zeros((64, 64, 3), np.uint8)).save(image)
    tool = ROOT / 'tools/research/onnx_nodes.py'
    words = '--weights', write_weights(tmp_path), '--photos', image
    words += '--folder', tmp_path / 'models', '--rounds', 1
    run_tool(monkeypatch, tool, *words)
    rows = capsys.readouterr().out
    assert all(f'| 1 | {x} |' in rows for x in ('full ViT', 'ATC', 'DiffRate'))
    assert '| MatMul |' in rows
    assert len([*(tmp_path / 'models').glob('*.onnx')]) == 3
