# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Candidates of a measurement."""

import pytest
from small_models import classifier, vit

from mmclca.benchmark import (
    Candidate,
    Setting,
    combine_methods,
    list_candidates,
)
from mmclca.benchmark.candidates import FUSED, PYTORCH
from mmclca.benchmark.steps import build, make_step
from mmclca.errors import Error
from mmclca.models import Variant

EVIT = dict(type='mmclca.EViT', keep_rate=0.5)


def config(**backbone):
    return classifier(vit(4, reducer=EVIT, reduce_at=(1, 2), **backbone))


def test_candidates_combine_configs_variants_and_runtimes():
    configs = dict(one=config(), two=config(branches=2))
    variants = [Variant(), Variant('ToMe', 0.7, cache=True, cla=True)]
    candidates = list_candidates(configs, variants, (PYTORCH, FUSED))
    assert [(x.title, x.reduction, x.runtime) for x in candidates] == [
        ('one', 'EViT 0.5', PYTORCH),
        ('one', 'none', PYTORCH),
        ('one', 'ToMe 0.7 + CLCA', PYTORCH),
        ('two', 'EViT 0.5', PYTORCH),
        ('two', 'EViT 0.5', FUSED),
        ('two', 'none', PYTORCH),
        ('two', 'none', FUSED),
        ('two', 'ToMe 0.7 + CLCA', PYTORCH),
        ('two', 'ToMe 0.7 + CLCA', FUSED),
    ]
    names = build(candidates[4], 'meta').state_dict().keys()
    assert not any('branches' in name for name in names)


def test_variants_combine_methods_rates_and_clca():
    variants = combine_methods(
        ('none', 'EViT', 'EViT'), (0.7, 0.5), (False, True)
    )
    assert [variant.name for variant in variants] == [
        'EViT 0.7',
        'EViT 0.7 + CLCA',
        'EViT 0.5',
        'EViT 0.5 + CLCA',
        'none',
    ]
    assert combine_methods((), (0.5,)) == []


def test_candidate_keeps_its_config_and_applies_its_variant():
    before = config()
    candidate = Candidate('one', before, Variant('ToMe', 0.7))
    assert candidate.model['backbone']['reducer']['keep_rate'] == 0.7
    assert before == config()
    assert make_step(candidate, Setting(batch=3))().shape == (3, 5)


def test_candidate_of_timm_has_no_reduction():
    timm = dict(
        type='mmpretrain.TimmClassifier',
        model_name='resmlp_12_224',
        img_size=32,
        num_classes=5,
    )
    candidate = Candidate('timm', timm)
    assert (candidate.reduction, candidate.is_fusible()) == ('none', False)
    assert make_step(candidate, Setting(batch=1))().shape == (1, 5)
    with pytest.raises(Error, match='backbone'):
        build(Candidate('timm', timm, Variant('ToMe', 0.5)), 'meta')


def test_convolutional_networks_get_images_of_the_default_size():
    resnet = classifier(dict(type='mmpretrain.ResNet', depth=18))
    resnet.update(type='mmpretrain.ImageClassifier')
    resnet['neck'] = dict(type='mmpretrain.GlobalAveragePooling')
    resnet['head'].update(in_channels=512)
    candidate = Candidate('resnet', resnet)
    assert make_step(candidate, Setting(batch=1))().shape == (1, 5)
