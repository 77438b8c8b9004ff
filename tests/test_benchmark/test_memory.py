# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace

import pytest
import torch

from mmclca.benchmark import memory
from mmclca.benchmark.candidates import Size, timm_vit
from mmclca.benchmark.memory import (
    obstacle,
    peak_memory,
    peak_so_far,
    resident,
)
from mmclca.benchmark.steps import Setting

WIDE = timm_vit(Size('wide', (32, 32), 1024, 2, 2, 4096))
WEIGHTS = 4 * WIDE.cost().params  # about 100 MiB
KINDS = ('cpu', pytest.param('cuda', marks=pytest.mark.gpu))


@pytest.fixture(params=KINDS)
def setting(request):
    setting = Setting(device=request.param, batch=2)
    if setting.on_gpu and not torch.cuda.is_available():
        pytest.skip('a CUDA device is missing')
    if obstacle(setting):
        pytest.skip(obstacle(setting))
    return setting


@pytest.mark.slow
def test_the_same_twice_and_more_for_more_images(setting):
    """Beside the weights, of which the small model has few."""
    small = timm_vit(Size('small', (224, 224), 64, 1, 2, 256))
    few, same, more = (
        peak_memory(small, replace(setting, batch=batch))
        for batch in (8, 8, 32)
    )
    assert same == pytest.approx(few, rel=0.1)
    assert more > 2.5 * few


@pytest.mark.slow
def test_weights_in_inference_and_four_times_them_in_training(setting):
    """Weights; and their gradients and AdamW's two moments."""
    for train, least in ((False, 1), (True, 4)):
        peak = peak_memory(WIDE, replace(setting, train=train))
        assert least * WEIGHTS < peak < (least + 0.5) * WEIGHTS


def test_what_cannot_be_measured():
    """On a GPU, only where CUDA graphs are replayed; compiled on the CPU."""
    reasons = {
        (device, mode): obstacle(Setting(device=device, compile_mode=mode))
        for device in ('cuda', 'cpu')
        for mode in (None, 'default', 'reduce-overhead', 'max-autotune')
    }
    assert not reasons['cuda', None] and not reasons['cuda', 'default']
    assert 'CUDA graph' in reasons['cuda', 'reduce-overhead']
    assert 'CUDA graph' in reasons['cuda', 'max-autotune']
    assert 'memory of the compiler' in reasons['cpu', 'default']


@pytest.mark.skipif(
    torch.cuda.is_available() or bool(obstacle(Setting())),
    reason='of the process itself, on Linux',
)
def test_peak_of_this_process():
    assert resident('VmRSS') / 2**20 <= peak_so_far() < 2**20


def test_each_measurement_on_a_gpu_begins_and_ends_without_the_last(
    monkeypatch,
):
    """Of compiled code, which holds models, and of which there is a limit."""
    done = []
    monkeypatch.setattr(torch.compiler, 'reset', lambda: done.append('reset'))
    for name, value in (
        ('memory_allocated', 3),
        ('reset_peak_memory_stats', None),
        ('max_memory_allocated', 10),
    ):
        monkeypatch.setattr(torch.cuda, name, lambda device, v=value: v)
    monkeypatch.setattr(
        memory, 'step_of', lambda *_: lambda: done.append('pass')
    )
    assert peak_memory(WIDE, Setting(device='cuda')) == 7
    assert done == ['reset', 'pass', 'pass', 'pass', 'reset']
