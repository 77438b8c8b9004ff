# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace

import pytest
import torch
from speed import memory
from speed.candidates import Size, timm_vit
from speed.memory import obstacle, peak_memory

from mmclca.benchmark.peak_memory import get_peak_memory, read_resident
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
def test_peak_memory_is_repeatable_and_grows_with_the_batch(setting):
    """The small model has few weights."""
    small = timm_vit(Size('small', (224, 224), 64, 1, 2, 256))
    few, same, more = (
        peak_memory(small, replace(setting, batch=batch))
        for batch in (8, 8, 32)
    )
    assert same == pytest.approx(few, rel=0.1)
    assert more > 2.5 * few


@pytest.mark.slow
def test_training_takes_four_times_the_weights(setting):
    """Weights, gradients and AdamW's two moments."""
    for train, least in ((False, 1), (True, 4)):
        peak = peak_memory(WIDE, replace(setting, train=train))
        assert least * WEIGHTS < peak < (least + 0.5) * WEIGHTS


def test_memory_is_not_measured_with_cuda_graphs_or_cpu_compilation():
    reasons = {
        (device, mode): obstacle(Setting(device=device, compile_mode=mode))
        for device in ('cuda', 'cpu')
        for mode in (None, 'default', 'reduce-overhead', 'max-autotune')
    }
    assert not reasons['cuda', None] and not reasons['cuda', 'default']
    assert reasons['cuda', 'reduce-overhead'] and reasons['cpu', 'default']
    assert reasons['cuda', 'max-autotune']


@pytest.mark.skipif(
    torch.cuda.is_available() or bool(obstacle(Setting())),
    reason='needs Linux without a GPU',
)
def test_peak_so_far_is_at_least_the_resident_size():
    assert read_resident('VmRSS') / 2**20 <= get_peak_memory() < 2**20


def test_killed_measurement_is_reported(monkeypatch):
    killed = memory.subprocess.CompletedProcess('python', -9)
    monkeypatch.setattr(memory.subprocess, 'run', lambda *_, **__: killed)
    with pytest.raises(RuntimeError, match=r'signal 9.*memory=False'):
        peak_memory(WIDE, Setting())


def test_gpu_measurement_clears_compiled_code_before_and_after(monkeypatch):
    """Compiled code holds models, and its number is limited."""
    done = []
    monkeypatch.setattr(memory.gc, 'collect', lambda: None)  # takes seconds
    monkeypatch.setattr(torch.compiler, 'reset', lambda: done.append('reset'))
    for name, value in (
        ('memory_allocated', 3),
        ('reset_peak_memory_stats', None),
        ('max_memory_allocated', 10),
    ):
        monkeypatch.setattr(torch.cuda, name, lambda device, v=value: v)
    monkeypatch.setattr(
        memory, 'make_step', lambda *_: lambda: done.append('pass')
    )
    assert peak_memory(WIDE, Setting(device='cuda')) == 7
    warm_up = ['pass', 'pass']
    assert done == [*warm_up, 'reset', 'pass', 'pass', 'pass', 'reset']
