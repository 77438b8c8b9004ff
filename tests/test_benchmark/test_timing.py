# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Latency per photo in the deployment runtime."""

import pytest
import torch
from tiny_photographs import write_weights

from mmclca.benchmark import timing
from mmclca.fitting.model import candidates_of, choose_model, classifier_config
from mmclca.fitting.weights import find_weights


@pytest.fixture
def seconds(monkeypatch):
    """Set the measured seconds, one list per model."""

    def measured(*found):
        def fake(steps, setting, rounds):
            return dict(zip(steps, found, strict=True))

        monkeypatch.setattr(timing, 'interleaved_seconds', fake)
        monkeypatch.setattr(timing, 'step_of_config', lambda *_: None)
        monkeypatch.setattr(timing, 'NEEDED', ())

    return measured


def test_latency_is_the_minimum_with_a_note_if_busy(seconds):
    seconds([0.003, 0.002, 0.005], [0.004] * 3)
    found, busy = timing.time_models(dict(a={}, b={}), 'pytorch', 'cpu')
    assert found == dict(a=2, b=4) and '1.5 times' in busy
    assert '1.5 times' in timing.busy_note(1.5, 0.1)
    assert 'load 2.0' in timing.busy_note(1.1, 2)
    assert not timing.busy_note(1.1, 1)


@pytest.mark.parametrize(
    'given, device, needed, runtime',
    [
        (None, 'cpu', ('onnx',), 'onnx'),
        (None, 'cpu', ('no_such_package',), 'pytorch'),
        (None, 'cuda', ('onnx',), 'pytorch'),
        ('onnx', 'cuda', ('onnx',), 'onnx'),
        ('pytorch', 'cpu', ('onnx',), 'pytorch'),
    ],
)
def test_runtime_is_selected(monkeypatch, given, device, needed, runtime):
    monkeypatch.setattr(timing, 'NEEDED', needed)
    assert timing.find_runtime(given, device) == runtime


def test_onnx_runtime_is_refused_if_not_installed(no_onnx):
    with pytest.raises(ImportError, match=r'mmclca\[deploy\]'):
        timing.find_runtime('onnx', 'cpu')


@pytest.mark.slow
def test_latency_is_measured_in_onnx_runtime(tmp_path):
    found = find_weights(str(write_weights(tmp_path)), None)
    variant = candidates_of(found)[-1]
    model = classifier_config(found, variant, 3).model
    threads = torch.get_num_threads()
    times, _ = timing.time_models(dict(a=model), 'onnx', 'cpu', rounds=3)
    assert times['a'] > 0
    assert torch.get_num_threads() == threads


def test_latency_budget_selects_a_model(tmp_path, seconds):
    found = find_weights(str(write_weights(tmp_path)), None)
    number = len(candidates_of(found))
    seconds(*[[0.03]] * (number - 1), [0.004, 0.008, 0.009])
    settings = 'pytorch', 'cpu'
    chosen = choose_model(found, 3, '5ms', *settings)
    assert chosen == candidates_of(found)[-1]
    with pytest.raises(ValueError, match='machine busy'):
        choose_model(found, 3, '3ms', *settings)
