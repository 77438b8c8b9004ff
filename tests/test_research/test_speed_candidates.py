# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from small_models import CACHE, classifier, vit
from speed.candidates import (
    REDUCERS,
    Size,
    mmpretrain_vit,
    read_candidate,
    timm_vit,
    vary,
    vary_all,
)
from torch.utils.flop_counter import FlopCounterMode

from mmclca.benchmark.steps import build
from mmclca.evaluation.cost import MORE_FLOPS
from mmclca.models import Variant
from mmclca.utils.meta_device import on_meta_device

TINY = Size('tiny', (64, 64), 32, 4, 2, 64)
EVIT = dict(type='mmclca.EViT', keep_rate=(0.5, 0.25))


def config(cla=False, **backbone):
    return classifier(vit(4, reducer=EVIT, reduce_at=(1, 2), **backbone), cla)


def test_cost_of_timm_vit_equals_torch_flop_counter():
    timm = timm_vit(TINY)
    counter = FlopCounterMode(display=False, custom_mapping=MORE_FLOPS)
    model = build(timm, 'cpu').eval()
    assert all(block.attn.fused_attn for block in model.model.blocks)
    with torch.no_grad(), counter:
        model(torch.zeros(1, 3, 64, 64))
    assert timm.cost().flops == counter.get_total_flops() // 2


def test_plain_vits_have_equal_parameters_and_clca_adds_cache_and_head():
    vit = mmpretrain_vit(Size.from_arch('deit-small', 224))
    with on_meta_device():
        models = [
            build(one, 'meta')
            for one in (vary(vit, Variant()), vit, timm_vit(vit.size))
        ]
    params = [sum(x.numel() for x in one.parameters()) for one in models]
    assert len(set(params)) == 1
    clca = vary(vit, Variant('EViT', 0.5, cache=True, cla=True))
    assert clca.cost().flops / 1e9 == pytest.approx(2.44, abs=5e-3)
    assert (clca.label, clca.reduce_at) == ('EViT 0.5 + CLCA', (3, 6, 9))
    assert type(build(clca, 'meta').head).__name__ == 'CLAHead'


def test_varied_candidates_combine_methods_rates_and_clca():
    found = vary_all(
        mmpretrain_vit(TINY),
        ['mmpretrain', 'none', 'ToMe', 'ATS'],
        [0.5, 0.1],
        [False, True],
    )
    assert [one.label for one in found] == [
        'mmpretrain',
        'none',
        *(
            f'{name} {rate}{clca}'
            for name in ('ToMe', 'ATS')
            for rate in (0.5, 0.1)
            for clca in ('', ' + CLCA')
        ),
    ]
    assert len(set(found)) == len(found)
    assert 'EViT' in REDUCERS and 'TokenReducer' not in REDUCERS


@pytest.mark.parametrize(
    'options, clca',
    [
        ({}, 'no'),
        (dict(cache=CACHE), 'CLC'),
        (dict(cla=True), 'CLA'),
        (dict(cla=True, cache=CACHE), 'yes'),
    ],
)
def test_candidate_reads_size_and_variant_from_config(options, clca):
    one = read_candidate('mine', config(**options))
    assert (one.title, one.method, one.clca) == ('mine', 'EViT', clca)
    assert (one.variant.rates, one.reduce_at) == ('0.5/0.25', (1, 2))
    assert one.size == Size('16 x 4', (32, 32), 16, 4, 2, 32, 8, 5)
    shape = build(timm_vit(one.size), 'cpu')(torch.zeros(1, 3, 32, 32)).shape
    assert shape == (1, 5)


def test_baseline_has_one_layer_per_parallel_branch():
    one = read_candidate('mine', classifier(vit(1, branches=2)))
    assert one.size.num_layers == 2
    assert timm_vit(one.size).cost().flops == one.cost().flops


def test_candidate_supports_images_that_are_not_square():
    size = read_candidate('mine', config(img_size=(16, 32))).size
    assert size.pixels == '16 x 32'
    x = torch.zeros(1, 3, 16, 32)
    assert build(timm_vit(size), 'cpu')(x).shape == (1, 5)


def test_other_architectures_need_a_baseline():
    resnet = dict(
        backbone=dict(type='mmpretrain.ResNet', depth=18),
        head=dict(type='ClsHead'),
    )
    one = read_candidate('mine', resnet)
    assert (one.size.name, one.size.pixels) == ('ResNet', '224')
    assert one.method == 'mmpretrain'
    with pytest.raises(ValueError, match='--baseline'):
        vary_all(one, ['mmpretrain'], [], [])
    headless = dict(config(), head=None)
    with pytest.raises(ValueError, match='model.head'):
        read_candidate('mine', headless)


def test_candidate_supports_timm_models_by_name():
    model = dict(
        type='mmpretrain.TimmClassifier',
        model_name='resmlp_12_224',
        img_size=32,
        num_classes=5,
    )
    timm = read_candidate('theirs', model)
    assert (timm.method, timm.size.name) == ('timm', 'resmlp_12_224')
    backbone = dict(type='mmclca.ResMLP', arch='s12', img_size=32)
    ours = dict(classifier(backbone), type='mmpretrain.ImageClassifier')
    ours['head'].update(in_channels=384)
    one = read_candidate('mine', ours)
    assert one.method == 'none'
    assert one.cost().flops == pytest.approx(timm.cost().flops, rel=1e-3)
    assert vary_all(timm, [], [], []) == []
