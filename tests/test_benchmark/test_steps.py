# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace

import pytest
import torch
from installed import NEEDS_COMPILER
from speed.candidates import Size, mmpretrain_vit, timm_vit, vary, with_onnx
from torch import nn

from mmclca.benchmark import Setting, interleaved_seconds, steps
from mmclca.benchmark.steps import (
    build,
    inference_step,
    make_step,
    median_milliseconds,
    training_step,
)
from mmclca.models import Variant

TINY = Size('tiny', (64, 64), 32, 4, 2, 64, num_classes=5)
VIT = mmpretrain_vit(TINY)
EVIT = vary(VIT, Variant('EViT', 0.5, cache=True, cla=True))


@pytest.mark.parametrize(
    'amp, dtype',
    [(None, torch.float32), ('bf16', torch.bfloat16), ('fp16', torch.float16)],
)
def test_inference_step_uses_the_amp_dtype_and_evaluation_mode(amp, dtype):
    model = nn.Sequential(nn.Dropout(0.99), nn.Linear(4, 4))
    x = torch.ones(2, 4)
    logits = inference_step(model, x, Setting(amp=amp))()
    assert not model.training and logits.is_inference()
    assert logits.dtype is dtype
    assert torch.allclose(logits.float(), model(x), atol=0.05)


def test_step_classifies_random_images_by_default():
    logits = make_step(VIT, Setting())()
    assert logits.shape == (8, 5) and logits.is_inference()


@pytest.mark.parametrize(
    'one, amp', [(EVIT, None), (VIT, 'bf16'), (timm_vit(TINY), 'fp16')]
)
def test_training_step_lowers_the_loss(one, amp):
    model = build(one, 'cpu').eval()
    before = {key: p.clone() for key, p in model.named_parameters()}
    step = training_step(model, torch.randn(2, 3, 64, 64), Setting(amp=amp))
    assert model.training
    first = step()
    moved = [k for k, p in model.named_parameters() if (p != before[k]).any()]
    assert moved
    assert all(param.grad is None for param in model.parameters())
    for _ in range(9):
        last = step()
    assert last < first


@NEEDS_COMPILER
@pytest.mark.slow
def test_onnx_steps_return_pytorch_logits(monkeypatch):
    """float32 is equal up to rounding, int8 approximately."""
    pytest.importorskip('onnxruntime')
    vit = mmpretrain_vit(Size('tiny', (32, 32), 16, 1, 1, 32))
    models = with_onnx([timm_vit(vit.size), vit])[1:]
    names = [one.full_title for one in models]
    assert names == ['tiny', 'tiny, ONNX', 'tiny, ONNX int8']
    images = torch.randn(2, 3, 32, 32)
    monkeypatch.setattr(Setting, 'images', lambda *_: images)
    results = []
    for one in models:
        torch.manual_seed(0)  # same weights
        results.append(make_step(one, Setting(batch=2))())
    assert torch.allclose(*results[:2], atol=1e-5)
    both = torch.stack([results[0].flatten(), results[2].flatten()])
    assert 0.8 < torch.corrcoef(both)[0, 1] < 0.99999


@NEEDS_COMPILER
@pytest.mark.slow
@pytest.mark.usefixtures('nothing_is_compiled_yet')
@pytest.mark.parametrize(
    'one, train', [(EVIT, False), (EVIT, True), (timm_vit(TINY), True)]
)
def test_compiled_step_equals_eager_step(one, train, monkeypatch):
    seen = []

    def compile(function, mode, fullgraph):
        seen.append((mode, fullgraph))
        return eager(function, backend='eager', fullgraph=fullgraph)

    eager = torch.compile
    monkeypatch.setattr(torch, 'compile', compile)
    results = []
    setting = Setting(batch=2, train=train)
    for like in (setting, replace(setting, compile_mode='max-autotune')):
        torch.manual_seed(1)
        results.append(make_step(one, like)())
    assert seen == [('max-autotune', True)]
    assert torch.allclose(*results, atol=1e-6)


@pytest.fixture
def clock(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(steps.time, 'perf_counter', lambda: clock[0])
    return clock


def test_timing_interleaves_and_skips_warm_up(clock):
    log = []

    def taking(name, *seconds):
        def step():
            log.append(name)
            clock[0] += next(left)

        left = iter(seconds)
        return step

    models = dict(
        fast=taking('fast', 9, 9, 1, 1, 7), slow=taking('slow', 0, 0, 2, 4, 2)
    )

    times = median_milliseconds(models, Setting(), 3, warm_up=2)
    assert times == dict(fast=1000, slow=2000)
    assert log == ['fast', 'slow'] * 5


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.cuda.is_available(), reason='a CUDA device is missing'
)
def test_gpu_timing_waits_for_the_gpu():
    x = torch.randn(4096, 4096, device='cuda')

    def step(times):
        for _ in range(times):
            x @ x

    steps = dict(one=lambda: step(1), many=lambda: step(20))
    seconds = interleaved_seconds(steps, Setting('cuda'), rounds=5)
    assert min(seconds['many']) > 5 * min(seconds['one'])
