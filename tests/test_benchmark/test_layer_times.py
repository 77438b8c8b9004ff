# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Times of a layer, and the latency predicted from them."""

from dataclasses import replace

import pytest
from installed import NEEDS_COMPILER

from mmclca.benchmark import layer_times
from mmclca.benchmark.layer_times import (
    ATTENTION,
    NETWORK,
    REDUCTIONS,
    LayerTimes,
    look_up_layer_times,
    time_layer,
)
from mmclca.evaluation.cost import Cost

TIMES = LayerTimes([10, 20, 30], [1.0, 2.0, 4.0])
PARTS = dict(embedding=5, attention=60, FFN=40, head=5)
ARCH = dict(embed_dims=32, num_layers=3, num_heads=2, feedforward_channels=64)
BACKBONE = dict(
    type='mmclca.TokenReductionViT',
    arch=ARCH,
    img_size=64,
    out_type='cls_average_std',
    final_norm=False,
)


def predict(attended, tokens, method=None, times=TIMES):
    parts = dict(PARTS, reduction=1)
    cost = Cost((64, 64), parts=parts, attended=attended, tokens=tokens)
    return times.predict(cost, method) / NETWORK


def test_predicted_latency_is_the_sum_of_the_layers():
    # embedding and head are a tenth of the multiply-accumulates of layers
    assert predict([30, 30], [30, 30]) == pytest.approx(8 * 1.1)
    assert predict([25], [25]) == pytest.approx(3 * 1.1)


@pytest.mark.parametrize('method', REDUCTIONS)
def test_predicted_latency_includes_the_reductions(method):
    same, fewest = REDUCTIONS[method]
    layers = 2 + 4 * ATTENTION + 2 * (1 - ATTENTION)
    reduction = same * 4 + fewest * 1
    expected = 1.1 * layers + reduction
    assert predict([30, 20], [20, 20], method) == pytest.approx(expected)
    # layers take longer with more channels, reductions do not
    wide = replace(TIMES, channels=2 * TIMES.channels)
    expected -= reduction / 2
    times = predict([30, 20], [20, 20], method, wide)
    assert times == pytest.approx(expected)


def test_layer_times_are_measured_once(tmp_path, monkeypatch):
    measured = []

    def fake(backbone, counts):
        measured.extend(counts)
        return {count: 1.0 + count for count in counts}, ''

    monkeypatch.setenv('TORCH_HOME', str(tmp_path))
    monkeypatch.setattr(layer_times, 'time_layer', fake)
    first = look_up_layer_times(BACKBONE, 150)
    smaller_images = dict(BACKBONE, img_size=32, reduce_at=(1,))
    assert look_up_layer_times(smaller_images, 150) == first
    assert first.counts[:2] == [10, 20] and first.counts[-1] == 150
    assert first.milliseconds[-1] == 151
    assert len(measured) == 15
    wider = dict(ARCH, embed_dims=64)
    look_up_layer_times(dict(BACKBONE, arch=wider), 150)
    assert len(measured) == 30


def test_few_tokens_have_fewer_counts(tmp_path, monkeypatch):
    monkeypatch.setenv('TORCH_HOME', str(tmp_path))
    monkeypatch.setattr(
        layer_times, 'time_layer', lambda _, x: (dict.fromkeys(x, 1.0), '')
    )
    assert look_up_layer_times(BACKBONE, 6).counts == [4, 5, 6]


@NEEDS_COMPILER
@pytest.mark.slow
def test_more_tokens_take_longer():
    one_layer = dict(BACKBONE, arch=dict(ARCH, num_layers=1), out_indices=(0,))
    times, _ = time_layer(one_layer, [5, 500])
    assert 0 < times[5] < times[500]
