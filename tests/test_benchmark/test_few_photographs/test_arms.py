# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The probe arms: which there are, what their networks are."""

import pytest

from mmclca.benchmark.few_photographs.arms import (
    OUR_PROBE,
    SHALLOWER,
    SMALLER,
    WEIGHTS,
    Frozen,
    ProbeArm,
    pipeline,
    probe_arms,
)
from mmclca.evaluation.cost import count_config

ARMS = probe_arms('deit-tiny-p16')


def tokens(arm):
    return count_config(arm.model(5)).tokens


def test_each_arm_is_there_once_and_networks_stay_together():
    names = [arm.name for arm in ARMS]
    assert len(set(names)) == len(names)
    networks = [arm.frozen for arm in ARMS]
    changes = sum(a != b for a, b in zip(networks, networks[1:], strict=False))
    assert changes == len(set(networks)) - 1
    assert {arm.frozen.backbone for arm in ARMS} == {'deit-tiny-p16'}
    ours = [arm.frozen for arm in ARMS if arm.line == OUR_PROBE]
    rates = {(one.method, one.keep_rate) for one in ours}
    for method in ('EViT', 'ToMe'):
        assert {(method, rate) for rate in (0.5, 0.25, 0.1)} <= rates
    assert ('', 1.0) in rates


def test_ours_pays_less_by_smaller_images_and_rivals_keep_all_tokens():
    sizes = [
        arm.frozen.img_size
        for arm in ARMS
        if arm.line == OUR_PROBE
        and (arm.frozen.method, arm.frozen.keep_rate) == ('EViT', 0.5)
    ]
    assert sizes == [224, 208, 192, 160, 144]
    smaller = [arm.frozen for arm in ARMS if arm.line == SMALLER]
    assert [one.img_size for one in smaller] == [160, 144, 128]
    assert {one.method for one in smaller} == {''}


@pytest.mark.parametrize('backbone', WEIGHTS)
def test_normalization_is_that_of_the_weights(backbone):
    model = probe_arms(backbone)[0].model(5)
    mean = 127.5 if backbone.startswith('vit') else 123.675
    assert model.data_preprocessor.mean[0] == mean


def test_what_networks_compute():
    full = ProbeArm(OUR_PROBE, Frozen('deit-tiny-p16'))
    assert tokens(full) == [197] * 9
    reduced = ProbeArm(OUR_PROBE, Frozen('deit-tiny-p16', 'EViT', 0.5))
    assert tokens(reduced) == [197] * 3 + [100] * 3 + [52] * 3
    small = ProbeArm(OUR_PROBE, Frozen('deit-tiny-p16', img_size=128))
    assert tokens(small) == [65] * 9
    shallow = next(arm for arm in ARMS if arm.line == SHALLOWER)
    assert tokens(shallow) == [197] * 7


def test_pipeline_crops_as_the_recipes_do():
    steps = pipeline(160)
    assert [step['type'] for step in steps[1:3]] == ['Resize', 'CenterCrop']
    assert steps[1]['scale'] == (182, 182) and steps[2]['crop_size'] == 160
