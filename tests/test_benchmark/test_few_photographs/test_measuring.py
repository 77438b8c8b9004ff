# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Probe arms on draws: each arm measured once, on the layers that it reads."""

import json
from functools import partial

import pytest
import torch

from mmclca.benchmark.few_photographs import measuring as module
from mmclca.benchmark.few_photographs.arms import (
    LAST_LOGISTIC,
    NEIGHBOUR,
    OUR_PROBE,
    Frozen,
    ProbeArm,
)
from mmclca.benchmark.few_photographs.draws import draw, read_draw
from mmclca.benchmark.few_photographs.measuring import (
    all_features,
    measure,
    measure_missing,
    positions,
)
from mmclca.benchmark.few_photographs.speed import milliseconds

FULL = Frozen('deit-tiny-p16')
LAST = dict(layers=(11,), out_type='cls_token')
ARMS = [
    ProbeArm(OUR_PROBE, FULL),
    ProbeArm(NEIGHBOUR, FULL, 'knn', **LAST, strength=1),
    ProbeArm(LAST_LOGISTIC, FULL, 'logistic', **LAST),
]
LABELS = torch.arange(4).repeat_interleave(6)


def features_of(labels, layers, part, noise=0.05):
    """Noise, but for some layers and one part, which tell the class."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(len(labels), 12, 2, 48, generator=generator)
    told = torch.nn.functional.one_hot(labels, 48).float()
    own = noise * x[:, layers, part] + told[:, None]
    x[:, layers, part] = own
    return x


def some_draws(number):
    drawn = [draw(LABELS, 3, seed).tolist() for seed in range(number)]
    return [
        (train, sorted(set(range(len(LABELS))) - set(train)))
        for train in drawn
    ]


@pytest.mark.parametrize('arm', ARMS, ids=lambda arm: arm.classifier)
def test_an_arm_reads_its_layers_alone(arm):
    part = int(arm.out_type == 'average')
    right = features_of(LABELS, list(arm.layers), part)
    found = measure(arm, right, LABELS, some_draws(1))
    assert found['accuracy'] == found['macro_recall'] == [100]
    assert len(found['strength']) == len(found['fit_seconds']) == 1
    others = sorted(set(range(12)) - set(arm.layers))
    wrong = features_of(LABELS, others, part)
    found = measure(arm, wrong, LABELS, some_draws(1))
    assert max(found['accuracy']) < 80


def test_macro_recall_counts_classes_alike():
    labels = torch.tensor([0] * 12 + [1] * 4)
    x = features_of(labels, list(range(9)), 1)
    x[14:, :9, 1] = x[:2, :9, 1]  # two of class 1 look like class 0
    draws = [([0, 1, 2, 12, 13], list(range(3, 12)) + [14, 15])]
    found = measure(ARMS[0], x, labels, draws)
    assert found['accuracy'] == [round(100 * 9 / 11, 4)]
    assert found['macro_recall'] == [50]


def test_positions_are_those_of_the_files():
    images = dict(sum(read_draw('leaf40', 0), []))
    train, test = positions(images, 'leaf40')[3]
    paths = list(images)
    assert [paths[i] for i in train] == [
        p for p, _ in read_draw('leaf40', 3)[0]
    ]
    assert sorted(train + test) == list(range(442))


def test_what_is_there_is_not_measured_again(tmp_path, monkeypatch):
    asked = []

    def features(frozen, weights, paths, num_classes):
        asked.append(frozen)
        labels = torch.tensor([int(p.split('/')[-2][:2]) for p in paths])
        return features_of(labels, list(range(9)), 1)

    monkeypatch.setattr(module, 'all_features', features)
    monkeypatch.setattr(module, 'NUM_DRAWS', 2)
    (tmp_path / 'leaf40').mkdir()
    (tmp_path / 'w.pth').touch()
    run = partial(
        measure_missing,
        data=tmp_path / 'leaf40',
        weights=tmp_path / 'w.pth',
        out=tmp_path / 'out',
        facts=dict(date='today'),
    )
    reduced = ProbeArm(OUR_PROBE, Frozen('deit-tiny-p16', 'EViT', 0.5))
    (first,) = run([ARMS[0]])
    before = first.stat().st_mtime_ns
    (second,) = run([ARMS[0], reduced])
    assert asked == [FULL, reduced.frozen]
    assert first.stat().st_mtime_ns == before
    record = json.loads(second.read_text())
    assert record['arm']['frozen']['keep_rate'] == 0.5
    assert record['machine'] == dict(date='today')
    assert record['train_images'] == 120 and len(record['accuracy']) == 2
    assert 0.5 < record['gmacs'] < json.loads(first.read_text())['gmacs'] < 1


def test_features_of_real_weights(shared, tmp_path):
    data = shared / 'data' / 'leaf40_white'
    paths = [str(data / path) for path, _ in read_draw(data.name, 0)[0][:3]]
    weights = shared / 'weights' / 'deit_tiny_patch16_224.pth'
    small = Frozen('deit-tiny-p16', 'EViT', 0.5, img_size=32)
    x = all_features(small, weights, paths, 40)
    assert x.shape == (3, 12, 2, 192)
    assert x.mean(-1).abs().max() < 1e-5  # normalized
    assert not torch.allclose(x[:, :, 0], x[:, :, 1], atol=0.1)
    broken = tmp_path / 'broken.jpg'
    broken.write_text('no image')
    with pytest.raises(ValueError, match='cannot be read'):
        all_features(small, weights, [*paths, str(broken)], 40)


def test_milliseconds_of_models_of_different_sizes():
    models = {
        name: ProbeArm(OUR_PROBE, frozen, layers=(0,)).model(2)
        for name, frozen in dict(
            small=Frozen('deit-tiny-p16', img_size=32), full=FULL
        ).items()
    }
    found = milliseconds(models, rounds=3)
    assert 0 < found['small'] < found['full']
