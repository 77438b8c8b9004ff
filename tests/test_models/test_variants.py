# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Add, change and remove reductions in model configs."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import mmpretrain
import pytest
import torch
import toy_backbones  # noqa: F401, registers them
from mmengine.config import Config, ConfigDict
from small_models import CACHE, build, classifier, images, vit
from tiny_run import ROOT

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.load import load
from mmclca.models import (
    Variant,
    get_reduction,
    list_methods,
    with_layer_fusion,
    with_reduction,
)
from mmclca.models.reduction.reducers.base import list_settings
from mmclca.registry import MODELS

MMPRETRAIN = Path(mmpretrain.__file__).parent / '.mim/configs'
PIECES = ROOT / 'configs/_base_/models'
CLCA = dict(
    method='EViT', keep_rate=0.5, reduce_at=(3, 6, 9), cache=True, cla=True
)


def built(model):
    with torch.device('meta'):
        return MODELS.build(deepcopy(model))


def plain(num_layers=4):
    """Return a classifier config of mmpretrain."""
    backbone = dict(vit(num_layers), type='VisionTransformer')
    return dict(classifier(backbone), type='ImageClassifier')


def toy():
    return classifier(dict(type='mmclca.ToyReducible', channels=16))


@pytest.mark.parametrize('method', ['EViT', 'DPCKNN', 'toy'])
def test_with_reduction_adds_and_removes_all_parts(method):
    ours = method == 'toy'
    model, method = (toy(), 'EViT') if ours else (plain(), method)
    before = deepcopy(model)
    clca = with_reduction(model, method, 0.5, cache=True, cla=True)
    assert model == before
    assert get_reduction(clca)['method'] == method
    net = MODELS.build(deepcopy(clca)).eval()
    assert net(images()).shape == (2, 5)
    assert net.backbone.reduces and net.backbone.cache is not None
    assert len(net.backbone.reduce_at) == 3
    last = len(net.backbone.layers) - 1
    assert net.head.num_layers == len({*net.backbone.reduce_at, last})
    back = with_reduction(clca)
    assert not any(get_reduction(back).values())
    again = with_reduction(back, method, 0.5, cache=True, cla=True)
    assert get_reduction(again) == get_reduction(clca)
    one, two = built(back).backbone, built(model).backbone
    assert one.state_dict().keys() == two.state_dict().keys()


def test_with_reduction_restores_distilled_head():
    head = dict(type='mmclca.DistilledHead', num_classes=5, in_channels=16)
    model = dict(classifier(vit(4, dist_token=True)), head=head)
    clca = with_reduction(model, 'EViT', 0.5, cache=True, cla=True)
    assert clca['head'] == dict(head, type='mmclca.CLAHead', num_layers=3)
    net = MODELS.build(deepcopy(clca)).eval()
    assert net(images()).shape == (2, 5)
    assert net.backbone.out_type == 'prefix'
    back = with_reduction(clca)
    assert back['head'] == head
    keys = built(model).state_dict().keys()
    assert built(back).state_dict().keys() == keys


def test_with_reduction_equals_config_files():
    model = Config.fromfile(PIECES / 'clca-evit_vit-base-p16.py').model
    assert get_reduction(model) == CLCA
    assert with_reduction(model, **CLCA) == model
    plain = with_reduction(model)
    assert plain.head == dict(
        type='VisionTransformerClsHead',
        num_classes=1000,
        in_channels=768,
        init_cfg=None,
    )
    assert with_reduction(plain, **CLCA) == model
    assert isinstance(plain, ConfigDict)


def test_with_reduction_accepts_mmpretrain_config():
    name = 'vision_transformer/vit-large-p16_64xb64_in1k-384px.py'
    model = Config.fromfile(MMPRETRAIN / name).model
    clca = with_reduction(model, 'ToMe', 0.7, cache=True, cla=True)
    assert clca.backbone.reduce_at == (6, 12, 18)
    assert clca.backbone.out_indices == (6, 12, 18, 23)
    assert clca.head.loss == model.head.loss
    assert clca.backbone.drop_rate == 0.1
    net = built(clca)
    assert type(net.backbone.reducer).__name__ == 'ToMe'
    assert net.head.in_channels == net.backbone.embed_dims


@pytest.mark.parametrize(
    'variant, name',
    [
        (Variant(), 'none'),
        (Variant('ToMe', (1, 0.5, 0.1), cache=True), 'ToMe 1/0.5/0.1 + CLC'),
        (Variant('TopK', 0.1, cache=True, cla=True), 'TopK 0.1 + CLCA'),
    ],
)
def test_variant_of_applied_model_is_equal(variant, name):
    before = plain()
    made = variant.apply(before)
    assert before == plain()
    assert (Variant.from_config(made), variant.name) == (variant, name)
    again = replace(variant, img_size=64, layers=(1, 2), out_type='average')
    fused = built(again.apply(made))
    assert fused.backbone.img_size == (64, 64)
    assert (fused.head.num_layers, len(fused.backbone.layers)) == (2, 3)


@pytest.mark.parametrize(
    'settings', [dict(num_tokens=(9, 8)), dict(prune=(9, 8), merge=(7, 5))]
)
def test_keep_rate_replaces_the_count_settings_of_a_method(settings):
    reducer = dict(type='mmclca.DiffRate', merge_share=0.2, **settings)
    model = classifier(vit(reducer=reducer, reduce_at=(2, 5)))
    made = with_reduction(model, 'DiffRate', 0.5)
    kept = dict(type='mmclca.DiffRate', merge_share=0.2, keep_rate=0.5)
    assert made['backbone']['reducer'] == kept


@pytest.mark.parametrize('method', list_methods())
def test_count_settings_are_settings_of_their_method(method):
    reducer_class = MODELS.get(method)
    assert {*reducer_class.count_settings} <= {*list_settings(reducer_class)}


def test_with_reduction_keeps_existing_settings():
    cache = dict(CACHE, num_tokens=3)
    sit = dict(type='mmclca.SiT', num_tokens=(9, 8), recalibrate=True)
    backbone = vit(reducer=sit, reduce_at=(2, 5), cache=cache)
    model = classifier(backbone, cla=True)
    model['head']['multiplier'] = 3
    assert with_reduction(model, 'SiT', cache=True, cla=True) == model
    # update() of a ConfigDict merges dicts
    model = ConfigDict(model)
    other = with_reduction(model, 'SiT', (0.7, 0.5), cache=True, cla=True)
    assert other['backbone']['reducer'] == dict(
        type='mmclca.SiT', recalibrate=True, keep_rate=(0.7, 0.5)
    )
    assert other['backbone']['cache'] == cache
    assert other['head'] == model['head']
    tome = with_reduction(other, 'mmclca.ToMe')['backbone']
    assert tome['reducer'] == dict(type='mmclca.ToMe', keep_rate=(0.7, 0.5))
    assert tome['reduce_at'] == (2, 5)


@pytest.mark.parametrize('reduce_at', [[0, 2], 2])
def test_cla_head_layers_follow_reduce_at(reduce_at):
    model = with_reduction(plain(), 'EViT', 0.5, cla=True)
    moved = with_reduction(model, 'EViT', 0.5, reduce_at, cla=True)
    layers = (2,) if reduce_at == 2 else (0, 2)
    assert moved['backbone']['out_indices'] == (*layers, 3)
    assert moved['head']['num_layers'] == len(layers) + 1


@pytest.mark.parametrize(
    'change, arguments, said',
    [
        ({}, ('Evit', 0.5), 'EViT'),
        ({}, ('LinearClsHead',), 'LinearClsHead'),
        ({}, (None, 0.5), 'keep_rate=0.5'),
        ({}, ('EViT', 1.5), 'keep_rate=1.5'),
        (dict(type='ResNet', depth=18), ('EViT',), 'ResNet'),
        (dict(type='DeiT3'), ('EViT',), 'layer_scale_init_value=1'),
        (dict(type='DistilledVisionTransformer'), ('EViT',), 'its forward'),
        (dict(type='mmclca.ResMLP'), ('EViT',), 'ResMLP'),
        (dict(type='mmclca.PatchConvNet'), ('EViT',), 'PatchConvNet'),
        (dict(type='NoSuch'), ('EViT',), 'NoSuch'),
    ],
)
def test_with_reduction_is_refused_if_setting_is_invalid(
    change, arguments, said
):
    model = plain()
    model['backbone'].update(change)
    with pytest.raises(ValueError, match=said) as error:
        with_reduction(model, *arguments)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('head', [None, dict(type='ClsHead')])
def test_cla_head_is_refused_if_head_is_unsupported(head):
    model = dict(plain(), head=head)
    assert with_reduction(model, 'EViT', 0.5)['head'] == head
    with pytest.raises(ValueError, match='cannot replace head='):
        with_reduction(model, 'EViT', 0.5, cla=True)


def test_with_reduction_is_refused_if_backbone_is_missing():
    with pytest.raises(ValueError, match='backbone'):
        with_reduction(dict(type='TimmClassifier'), 'EViT')


def test_layer_fusion_uses_averages_of_three_quarters_by_default():
    before = plain()
    made = with_layer_fusion(deepcopy(before))
    net = build(made).eval()
    assert len(net.backbone.layers) == net.head.num_layers == 3
    whole = build(classifier(vit(4))).eval()
    net.backbone.load_state_dict(whole.backbone.state_dict(), strict=False)
    x = images()
    tokens, _ = whole.backbone.embed(x)
    pairs = zip(whole.backbone.layers, net.backbone(x), strict=False)
    for layer, found in pairs:
        tokens = whole.backbone.run_layer(layer, tokens, None)
        torch.testing.assert_close(found, tokens.features[:, 1:].mean(dim=1))


def test_layer_fusion_removes_later_reductions():
    reduced = with_reduction(plain(12), 'EViT', (0.5, 0.6, 0.7), cache=True)
    made = with_layer_fusion(reduced, (0, 4, 8))['backbone']
    assert made['reduce_at'] == (3, 6)
    assert made['reducer']['keep_rate'] == (0.5, 0.6)
    assert build(with_layer_fusion(reduced))(images()).shape == (2, 5)
    full = with_layer_fusion(reduced, (1, 2))['backbone']
    assert full['reducer'] is None and full['cache'] is None


def test_layer_fusion_keeps_texts_as_long_as_the_number_of_stages():
    name = 'mmclca.ATC'
    layers = range(1, 1 + len(name))
    reduced = with_reduction(plain(12), 'ATC', 0.9, reduce_at=layers)
    made = with_layer_fusion(reduced, (0, 4))['backbone']
    assert made['reducer']['type'] == name


def test_layer_fusion_loads_weights_of_full_network():
    whole = build(classifier(vit(4)))
    weights = whole.state_dict()
    cut = build(with_layer_fusion(plain()))
    report = load(cut, weights, strict=False)
    assert not [name for name in report.new if 'backbone' in name]
    assert any('backbone.layers.3' in name for name in report.unused)
    shallow = build(classifier(vit(3)))
    with pytest.raises(CheckpointError, match='is unexpected'):
        load(shallow, weights, strict=False)


def test_layer_fusion_is_refused_if_backbone_returns_only_cls():
    made = with_layer_fusion(toy(), (0, 1), 'cls_token')
    assert build(made)(images()).shape == (2, 5)
    with pytest.raises(ValueError, match='only CLS'):
        with_layer_fusion(toy(), (0, 1))
