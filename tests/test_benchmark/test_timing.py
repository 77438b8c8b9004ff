# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Latency per photo, and the accuracy of an int8 file."""

import sys
import time
from types import SimpleNamespace

import pytest
import torch
from installed import NEEDS_COMPILER
from tiny_photos import write_weights

from mmclca.benchmark import quantized, timing
from mmclca.fitting.candidates import list_variants
from mmclca.fitting.model_config import build_config
from mmclca.fitting.weights import find_weights
from mmclca.utils.files import write_rows
from mmclca.utils.torch_versions import EXPORTS_LOOPS


@pytest.mark.parametrize(
    'seconds, shares, reason',
    [
        ([0.4, 0.2, 0.21, 0.3], [], ''),
        ([0.4, 0.2, 0.21, 0.3], [0.7, 1, 0.4, 0.6], ''),
        ([0.4, 0.2, 0.21, 0.3], [1, 0.5, 1, 1], '50% of a core'),
        ([0.4, 0.2, 0.3, 0.3], [], 'differ by 50%'),
    ],
)
def test_machine_is_busy_if_the_fastest_pass_is_uncertain(
    seconds, shares, reason
):
    passes = timing.Passes(seconds, shares)
    note = timing.busy_note(dict(a=passes))
    assert passes.milliseconds == 200
    assert (reason in note) if reason else not note


@pytest.mark.skipif(sys.platform == 'win32', reason='coarse clock')
def test_interruptions_do_not_count_if_a_model_has_one_thread():
    steps = dict(waits=lambda: time.sleep(0.02))
    (passes,) = timing.repeat_passes(steps, timing.Setting(), 4).values()
    assert len(passes.seconds) == 4 and passes.milliseconds < 10
    setting = timing.Setting(threads=2)
    (passes,) = timing.repeat_passes(steps, setting, 4).values()
    assert passes.milliseconds > 10
    assert 'of a core' in passes.describe_disturbance()


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
    monkeypatch.setattr(torch, '__version__', EXPORTS_LOOPS)
    monkeypatch.setattr(timing, 'NEEDED', needed)
    assert timing.find_runtime(given, device) == runtime


@pytest.fixture
def earlier_torch(monkeypatch):
    """Make torch look older than its exporter of loops."""
    monkeypatch.setattr(torch, '__version__', '2.8.0+cu128')
    monkeypatch.setattr(timing, 'NEEDED', ('onnx',))


def test_latency_is_that_of_pytorch_if_torch_is_too_old(earlier_torch, capsys):
    assert timing.find_runtime(None, 'cpu') == 'pytorch'
    assert not capsys.readouterr().err  # it may be asked twice
    timing.warn_if_torch_is_old('cpu')
    warning = capsys.readouterr().err
    assert 'PyTorch' in warning and '2.8.0' in warning and '2.11' in warning
    timing.warn_if_torch_is_old('cuda')
    assert not capsys.readouterr().err


def test_onnx_runtime_is_refused_if_torch_is_too_old(earlier_torch):
    with pytest.raises(ImportError, match=r'2\.11 .*2\.8\.0'):
        timing.find_runtime('onnx', 'cpu')


def test_onnx_runtime_is_refused_if_not_installed(no_onnx):
    with pytest.raises(ImportError, match=r'mmclca\[deploy\]'):
        timing.find_runtime('onnx', 'cpu')


@NEEDS_COMPILER
@pytest.mark.slow
def test_latency_is_measured_in_onnx_runtime(tmp_path):
    found = find_weights(str(write_weights(tmp_path)), None)
    variant = list_variants(found)[-1]
    model = build_config(found, variant, 3).model
    threads = torch.get_num_threads()
    times, _ = timing.time_models(dict(a=model), 'onnx', 'cpu', rounds=3)
    assert times['a'] > 0
    assert torch.get_num_threads() == threads


COLUMNS = ('path', 'class', 'split', 'used', 'why_not', 'digest')
TRAINED = [(f'{i}.jpg', 'ash', 'train', True, '', '') for i in range(3)]
OUT = [
    ('a.jpg', 'ash', 'test', False, 'held out in test', ''),
    ('b.jpg', 'elm', 'val', False, 'held out in val', ''),
    ('c.jpg', 'elm', 'val', False, 'held out in val', ''),
]
LEFT = [('d.jpg', '', '', False, 'same as a.jpg', '')]


@pytest.fixture
def said(tmp_path, monkeypatch):
    """Report on rows of photographs.csv, some of them unreadable."""

    def read(_, paths, function, *__):
        images = torch.eye(3)[[i for i in range(3) if i not in gone]]
        return function(images).flatten(1), dict.fromkeys(gone, 'gone')

    def said(rows, *unread):
        gone[:] = unread
        write_rows(tmp_path / 'photographs.csv', [COLUMNS, *rows])
        (tmp_path / 'model.pth').touch()
        found = quantized.list_photos(tmp_path)
        # float32 predicts ash, elm, elm and int8 ash, ash, elm
        whole = torch.tensor([[1.0, 0], [0, 1], [0, 1]])
        small = torch.tensor([[1.0, 0], [1, 0], [0, 1]])
        model = SimpleNamespace(classes=['ash', 'elm'])
        # files exported from a fit also return the unknown-class score
        runs = (lambda x: x @ small), (lambda x: (x @ whole, x[:, 0]))
        notes = quantized._compare_predictions(model, found, runs)
        return ' '.join(map(str, notes))

    gone = []
    monkeypatch.setattr(quantized, 'extract_outputs', read)
    return said


def test_accuracy_is_reported_on_hold_out_photos(said):
    text = said(TRAINED + OUT + LEFT)
    assert '8-bit 2 of 3' in text and '32-bit 3 (' in text
    text = said(TRAINED + OUT, 1)
    assert '8-bit 2 of 2' in text and '32-bit 2' in text


def test_agreement_is_reported_if_only_training_photos_exist(said):
    assert '2 of 3 training photos' in said(TRAINED + LEFT)
    assert 'not measured' in said(TRAINED, 0, 1, 2)
