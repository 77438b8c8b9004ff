# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""tools/research/compare_speed.py: models, output files."""

import json
from functools import partial

import pytest
import torch
from installed import NEEDS_COMPILER
from mmcv import imread
from speed import comparison as results
from speed.candidates import REDUCERS
from tiny_run import CONFIG, ROOT, load_tool

from mmclca.benchmark.steps import build

TOOL = ROOT / 'tools/research/compare_speed.py'
QUICK = ('--arch', 'deit-tiny', '--img-size', 32, '--batch', 2, '--rounds', 2)


@pytest.fixture
def tool(monkeypatch):
    """Load the tool with command-line arguments."""
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)

    return partial(load_tool, monkeypatch, TOOL)


@pytest.fixture
def plan_of(tool, monkeypatch):
    """Return the models to time, per baseline."""

    def plan_of(*options):
        plans = []
        monkeypatch.setattr(
            'speed.comparison.compare',
            lambda plan, *_: plans.append(plan) or (),
        )
        tool(*options)['main']()
        return plans[0]

    return plan_of


@pytest.fixture
def config(tmp_path):
    """Config file for a tiny model."""
    path = tmp_path / 'mine.py'
    path.write_text(CONFIG)
    return path


def table(text):
    """Return the cells in the first table of a page, titles first."""
    lines = text.split('\n\n')
    (first, *_) = [part for part in lines if part.startswith('|')]
    rows = [line.strip('| ').split(' | ') for line in first.splitlines()]
    assert len({line.count('|') for line in first.splitlines()}) == 1
    return [rows[0], *rows[2:]]


@NEEDS_COMPILER
@pytest.mark.slow
def test_onnx_backend_measures_pytorch_and_onnx_runtime(
    tool, config, tmp_path
):
    pytest.importorskip('onnxruntime')
    prefix = tmp_path / 'onnx'
    options = ('--backend', 'onnx', '--batch', 2, '--rounds', 2)
    tool('--baseline', config, *options, '--out', prefix)['main']()
    text = prefix.with_suffix('.md').read_text()
    assert 'ONNX Runtime 1.' in text
    names = [row[0] for row in table(text)[1:]]
    assert names == ['mine', 'mine, ONNX', 'mine, ONNX int8']


@pytest.mark.slow
def test_methods_are_applied_to_the_baseline_for_each_batch_size(
    tool, config, tmp_path, capsys
):
    prefix = tmp_path / 'page'
    chosen = ('--methods', 'none', 'EViT', '--keep-rates', 0.5, '--clca', 'no')
    options = ('--batch', 1, 2, 2, '--rounds', 1)
    tool('--baseline', config, *chosen, *options, '--out', prefix)['main']()
    out = capsys.readouterr().out
    assert out.startswith('inference, batch 1/2, float32, eager')
    assert '1 thread\n' in out
    rows = [row[:3] + row[8:9] for row in table(out)[1:]]
    assert rows == [
        ['mine', method, rate, batch]
        for batch in '12'
        for method, rate in (('TopK', '0.5'), ('none', ''), ('EViT', '0.5'))
    ]
    assert table(out)[1][12] == table(out)[4][12] == '1.00'  # GMACs ratio
    content = json.loads(prefix.with_suffix('.json').read_text())
    assert content['batches'] == [1, 2]


def test_fuse_adds_a_fused_model(plan_of, config, tmp_path):
    both = tmp_path / 'both.py'
    both.write_text(CONFIG.replace('img_size=32', 'branches=2, img_size=32'))
    plan = plan_of('--baseline', config, '--configs', both, '--fuse')
    (models,) = plan.values()
    assert [one.full_title for one in models] == ['both', 'both, fused']
    assert len({one.cost().flops for one in models}) == 1
    names = build(models[-1], 'meta').state_dict().keys()
    assert not any('branches' in name for name in names)


def test_train_measures_training_steps(tool, config, capsys):
    options = ('--train', '--no-memory', '--clca', 'yes', '--amp', 'bf16')
    chosen = ('--methods', 'DynamicViT', '--keep-rates', 0.5, '--rounds', 1)
    tool('--baseline', config, '--batch', 2, *options, *chosen)['main']()
    out = capsys.readouterr().out
    assert out.startswith('training step, batch 2, bf16, eager')
    assert [row[1] for row in table(out)[1:]] == ['TopK', 'DynamicViT']


def test_plan_follows_the_default_options(plan_of, config):
    plan = plan_of('--img-size', '224', '448', '--clca', 'yes')
    sizes = [(one.size.name, one.size.pixels) for one in plan]
    assert sizes == [('deit-small', '224'), ('deit-small', '448')]
    number = 2 + 5 * len(REDUCERS)
    assert [len(found) for found in plan.values()] == [number] * 2
    plan = plan_of('--configs', config, '--arch', 'base', '--methods', 'none')
    assert [[one.label for one in found] for found in plan.values()] == [
        ['none'],
        ['none', 'TopK 0.5 + CLC'],
    ]
    twice = ('--methods', 'EViT', 'EViT', '--keep-rates', '0.5', '.5')
    (found,) = plan_of(*twice, '--clca', 'no').values()
    assert [one.label for one in found] == ['EViT 0.5']
    (found,) = plan_of('--configs', config).values()
    assert [one.method for one in found] == ['mmpretrain', 'none', 'TopK']


@pytest.mark.parametrize(
    'more, measured',
    [((), None), (['--train'], True), (['--train', '--compile'], False)],
)
def test_memory_is_measured_by_default_if_training_eager(
    more, measured, tool, monkeypatch
):
    given = []
    monkeypatch.setattr(
        'speed.comparison.compare', lambda *args: given.extend(args) or ()
    )
    tool(*QUICK, '--methods', 'none', *more)['main']()
    assert bool(given[4]) == bool(measured)


@pytest.fixture
def greedy(monkeypatch):
    """Let the method ATS run out of memory."""
    make_step = results.make_step

    def out_of_memory():
        raise torch.OutOfMemoryError

    def step(candidate, setting):
        greedy = candidate.method == 'ATS'
        return out_of_memory if greedy else make_step(candidate, setting)

    monkeypatch.setattr(results, 'make_step', step)


def test_model_is_listed_if_out_of_memory(
    tool, greedy, config, tmp_path, capsys
):
    prefix = tmp_path / 'page'
    chosen = ('--methods', 'EViT', 'ATS', '--keep-rates', 0.5, '--clca', 'no')
    options = ('--rounds', 1, '--out', prefix)
    tool('--baseline', config, *chosen, *options)['main']()
    name = 'ATS 0.5 (mine, 32 px)'
    assert f'out of memory: {name}\n' in capsys.readouterr().err
    text = prefix.with_suffix('.md').read_text()
    assert [row[1] for row in table(text)[1:]] == ['TopK', 'EViT']
    assert f'\n\nOut of memory: {name}.\n' in text
    assert 'reducers' not in text and 'compare_speed.py --baseline' in text


def test_finished_measurements_are_kept_if_interrupted(
    tool, config, monkeypatch, tmp_path
):
    """The second group of models raises KeyboardInterrupt."""
    interleaved_seconds, calls = results.interleaved_seconds, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return interleaved_seconds(*arguments)

    monkeypatch.setattr(results, 'interleaved_seconds', interrupted)
    monkeypatch.setattr(results, 'AT_ONCE', 1)
    prefix = tmp_path / 'page'
    chosen = ('--methods', 'none', 'EViT', '--rounds', 2)
    with pytest.raises(KeyboardInterrupt):
        tool('--baseline', config, *chosen, '--out', prefix)['main']()
    rows = table(prefix.with_suffix('.md').read_text())
    assert [row[1] for row in rows[1:]] == ['TopK', 'none']
    content = json.loads(prefix.with_suffix('.json').read_text())
    assert [len(one['seconds']) for one in content['results']] == [2, 2]
    assert 'compare_speed.py' in content['machine']['command']
    assert prefix.with_suffix('.csv').read_text().count('\n') == 3
    assert imread(str(prefix.with_suffix('.png'))).std() > 5


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.cuda.is_available(), reason='a CUDA device is missing'
)
@pytest.mark.parametrize('more', [(), ('--train',), ('--compile',)])
def test_reduction_saves_memory_on_gpu(tool, capsys, more):
    chosen = ('--methods', 'TopK', '--keep-rates', 0.25, '--clca', 'yes')
    options = ('--device', 'cuda', '--amp', 'bf16', '--memory', *more)
    tool(*options, *chosen, '--batch', 64)['main']()
    _, timm, reduced = table(capsys.readouterr().out)
    # a compiled model with CLCA keeps more buffers in inference
    limit = 1.5 if '--compile' in more else 1
    assert 0 < int(reduced[-2]) < limit * int(timm[-2])
