# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""tools/benchmark/throughput.py: given configs and variants in turn."""

import csv
import json
from functools import partial

import pytest
import torch
from installed import NEEDS_COMPILER
from tiny_run import CONFIG, ROOT, load_tool

from mmclca.benchmark import Candidate, Setting, steps, throughput
from mmclca.benchmark.candidates import INT8
from mmclca.errors import Error

TOOL = ROOT / 'tools/benchmark/throughput.py'


@pytest.fixture
def tool(monkeypatch):
    """Load the tool with command-line arguments."""
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)
    return partial(load_tool, monkeypatch, TOOL)


@pytest.fixture
def config(tmp_path):
    """Config file for a tiny model with TopK, keep rate 0.5."""
    path = tmp_path / 'mine.py'
    path.write_text(CONFIG)
    return path


def read_rows(out):
    """Return the cells of the table, titles first."""
    lines = [line for line in out.splitlines() if line.startswith('|')]
    rows = [line.strip('| ').split(' | ') for line in lines]
    return [rows[0], *rows[2:]]


def test_variants_are_compared_with_the_first_config(
    tool, config, tmp_path, capsys
):
    table = tmp_path / 'speed.csv'
    variants = ('--methods', 'EViT', 'none', '--keep-rates', 0.5, 0.25)
    more = ('--batch', 1, 2, '--rounds', 2, '--out', table)
    tool(config, *variants, *more)['main']()
    out = capsys.readouterr().out
    assert out.startswith('inference, batch 1/2, float32, eager')
    titles, *rows = read_rows(out)
    assert [row[:4] for row in rows] == [
        ['mine', reduction, 'pytorch', batch]
        for batch in '12'
        for reduction in ('TopK 0.5 + CLC', 'EViT 0.5', 'EViT 0.25', 'none')
    ]
    gmacs = [float(row[4]) for row in rows[:4]]
    assert gmacs[2] <= gmacs[1] <= gmacs[3]
    assert rows[0][6] == rows[4][6] == '1.00'
    with open(table) as file:
        assert [*csv.reader(file)] == [titles, *rows]


def test_runtimes_are_measured_for_each_variant(tool, tmp_path, capsys):
    path = tmp_path / 'both.py'
    path.write_text(CONFIG.replace('img_size=32', 'branches=2, img_size=32'))
    tool(path, '--runtimes', 'pytorch', 'fused', '--rounds', 1)['main']()
    rows = read_rows(capsys.readouterr().out)[1:]
    assert [row[2] for row in rows] == ['pytorch', 'fused']
    assert rows[0][4] == rows[1][4]  # GMACs of the unfused model


def test_json_has_the_numbers_of_the_table(tool, config, tmp_path, capsys):
    path = tmp_path / 'speed.json'
    variants = ('--methods', 'DynamicViT', '--clca', 'yes', '--rounds', 1)
    tool(config, *variants, '--amp', 'bf16', '--out', path)['main']()
    out = capsys.readouterr().out
    assert out.startswith('inference, batch 8, bf16, eager')
    rows = read_rows(out)[1:]
    results = json.loads(path.read_text())
    assert [x['reduction'] for x in results] == [row[1] for row in rows]
    assert rows[1][1] == 'DynamicViT 0.5 + CLCA'
    for result, row in zip(results, rows, strict=True):
        assert f'{result["gmacs"]:.2f}' == row[4]
        assert f'{result["images_per_second"]:.4g}' == row[5]
        low, high = result['quartiles']
        assert low <= result['speed_up'] <= high


def test_groups_share_the_baseline_without_repeating_it(
    tool, config, capsys, monkeypatch
):
    monkeypatch.setattr(throughput, 'AT_ONCE', 1)
    variants = ('--methods', 'EViT', 'none', '--rounds', 1)
    tool(config, *variants, '--batch', 1)['main']()
    names = [row[1] for row in read_rows(capsys.readouterr().out)[1:]]
    assert names == ['TopK 0.5 + CLC', 'EViT 0.5', 'none']


def test_onnx_runtime_is_refused_if_training_is_measured():
    candidates = [Candidate('a', {}), Candidate('b', {}, runtime=INT8)]
    with pytest.raises(Error, match='`train`'):
        throughput.measure_throughput(candidates, Setting(train=True), [8])


def test_model_is_left_out_if_out_of_memory(tool, config, capsys, monkeypatch):
    make_step = steps.make_step

    def run_out():
        raise torch.OutOfMemoryError

    monkeypatch.setattr(
        steps,
        'make_step',
        lambda x, setting: (
            run_out if 'ATS' in x.reduction else make_step(x, setting)
        ),
    )
    tool(config, '--methods', 'EViT', 'ATS', '--rounds', 1)['main']()
    captured = capsys.readouterr()
    assert 'mine, ATS 0.5: out of memory' in captured.err
    names = [row[1] for row in read_rows(captured.out)[1:]]
    assert names == ['TopK 0.5 + CLC', 'EViT 0.5']


@pytest.mark.slow
@NEEDS_COMPILER
def test_onnx_runtimes_measure_the_exported_model(tool, config, capsys):
    pytest.importorskip('onnxruntime')
    runtimes = ('--runtimes', 'pytorch', 'onnx', 'onnx-int8')
    tool(config, *runtimes, '--batch', 2, '--rounds', 2)['main']()
    rows = read_rows(capsys.readouterr().out)[1:]
    assert [row[2] for row in rows] == [*runtimes[1:]]
