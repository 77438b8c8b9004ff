# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A model of timm as backbone of a config."""

import pytest
import timm
import torch
from installed import needs
from mmpretrain.structures import DataSample

from mmclca.checkpoints.load import load
from mmclca.models import with_reduction
from mmclca.registry import MODELS

pytestmark = needs('timm', '1.0.31')
DINOV3 = 'vit_small_patch16_dinov3'
EVA = 'eva02_tiny_patch14_224'
CLCA = dict(
    reducer=dict(type='mmclca.EViT', keep_rate=0.5),
    reduce_at=(1,),
    cache=dict(type='mmclca.CrossLayerCache'),
    out_indices=(1, -1),
    final_norm=False,
)


def build(arch=DINOV3, **settings):
    """Build three layers for images of 3 x 3 patches."""
    size = 3 * int(arch.split('patch')[1][:2])
    settings = dict(img_size=size, depth=3) | settings
    return MODELS.build(dict(type='mmclca.TimmViT', arch=arch, **settings))


def images(backbone):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, 3, *backbone.img_size, generator=generator)


@pytest.mark.parametrize('arch', [DINOV3, EVA, 'deit_tiny_patch16_224'])
@torch.no_grad()
def test_weights_of_timm_give_features_of_timm(arch, tmp_path):
    backbone = build(arch, depth=None).eval()
    source = timm.create_model(arch, img_size=backbone.img_size).eval()
    torch.save(source.state_dict(), tmp_path / 'timm.pth')
    load(backbone, tmp_path / 'timm.pth')
    x = images(backbone)
    (found,) = backbone(x)
    expected = source.forward_features(x)[:, 0]
    torch.testing.assert_close(found, expected)
    kept = build(
        arch, depth=None, reducer=dict(type='mmclca.ToMe'), reduce_at=(1,)
    )
    kept.eval().load_state_dict(backbone.state_dict())
    torch.testing.assert_close(kept(x)[0], expected)


def test_positions_are_resized_and_clr_tokens_start_at_cls(tmp_path):
    source = timm.create_model(EVA)
    torch.save(source.state_dict(), tmp_path / 'timm.pth')
    backbone = build(EVA, depth=None, **CLCA)
    report = load(backbone, tmp_path / 'timm.pth', strict=False)
    assert report.resized == ['net.pos_embed']
    assert backbone.net.pos_embed.shape == (1, 1 + 9, 192)
    torch.testing.assert_close(backbone.cache.clr, source.cls_token)


def test_weights_of_another_network_are_refused(tmp_path):
    weights = timm.create_model(EVA).state_dict()
    with pytest.raises(ValueError, match='TimmViT') as error:
        load(build(depth=None), dict(state_dict=weights))
    assert '\n' not in str(error.value)


def test_classifier_with_clca_trains_all_parameters():
    model = MODELS.build(
        dict(
            type='mmclca.TokenReductionClassifier',
            backbone=dict(
                type='mmclca.TimmViT',
                arch=DINOV3,
                img_size=48,
                depth=3,
                with_cp=True,
                **CLCA,
            ),
            head=dict(
                type='mmclca.CLAHead',
                num_classes=3,
                in_channels=384,
                num_layers=2,
            ),
        )
    )
    samples = [DataSample().set_gt_label(i) for i in range(2)]
    losses = model.loss(images(model.backbone), samples)
    losses['loss'].backward()
    assert all(x.grad is not None for x in model.parameters())
    depths = [
        model.get_layer_depth(f'backbone.{name}')
        for name in ('net.cls_token', 'net.blocks.2.norm1.weight', 'cache.clr')
    ]
    assert depths == [(0, 5), (3, 5), (0, 5)]
    assert model.get_layer_depth('head.layers.4.bias') == (4, 5)


def test_frozen_stages_get_no_gradient():
    backbone = build(frozen_stages=2, out_type='cls_average_std').train()
    (found,) = backbone(images(backbone))
    assert found.shape == (2, 3 * 384)
    found.sum().backward()
    trained = {
        name.split('.')[2] if 'blocks' in name else name
        for name, value in backbone.named_parameters()
        if value.grad is not None
    }
    assert trained == {'2', 'net.norm.weight', 'net.norm.bias'}
    assert not backbone.layers[1].training and backbone.layers[2].training


def test_variant_adds_and_removes_reduction():
    plain = dict(
        type='ImageClassifier',
        backbone=dict(type='mmclca.TimmViT', arch=DINOV3, depth=3),
        head=dict(type='LinearClsHead', num_classes=3, in_channels=384),
    )
    model = with_reduction(plain, 'EViT', 0.5, cache=True, cla=True)
    backbone = MODELS.build(model).backbone
    assert backbone.reduce_at and backbone.cache is not None
    assert with_reduction(model)['backbone']['reducer'] is None


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        (dict(arch='vit_small_patch16_dinov4'), 'not in timm'),
        (dict(arch='beit_base_patch16_224'), 'bias'),
        (dict(out_indices=3), 'out_indices=3'),
        (dict(depth=13), 'depth=13'),
        (dict(frozen_stages=4), 'frozen_stages=4'),
        (dict(out_type='map'), "out_type: no 'map'"),
    ],
)
def test_wrong_setting_is_refused_in_one_line(settings, message):
    with pytest.raises(ValueError, match=message) as error:
        build(**settings)
    assert '\n' not in str(error.value)
