# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Attention maps for pooling by class attention."""

import numpy as np
import pytest
import torch
from small_models import arch, build, images, vit

from mmclca.datasets.batches import View
from mmclca.visualization import class_attention, pooled, pooling_maps

CONVNET = dict(
    type='mmclca.PatchConvNet',
    arch=dict(embed_dims=16, num_layers=1),
    img_size=32,
)
CAIT = dict(type='mmclca.CaiT', arch=arch(2), img_size=32, patch_size=8)
POOL = dict(type='mmclca.AttentionPool', in_channels=64)
RESNET = dict(type='ResNet', depth=18, base_channels=8)
NAMES = ['ash', 'beech', 'elm', 'oak', 'yew']


def classifier(backbone, neck=None, head='LinearClsHead', channels=16):
    head = dict(type=head, num_classes=5, in_channels=channels)
    kind = 'ImageClassifier'
    model = dict(type=kind, backbone=backbone, neck=neck, head=head)
    return build(model).eval()


def a_class():
    backbone = dict(CONVNET, multiclass=5)
    return classifier(backbone, head='mmclca.PerClassHead')


def one_view(height=32, width=48):
    image = np.full((height, width, 3), 200, np.uint8)
    return View('leaf', image, images(1, height, width))


def test_pooling_maps_are_the_softmax_over_positions():
    model, x = classifier(CONVNET), images(2, 32, 48)
    (maps,) = pooling_maps(model, x)
    assert maps.shape == (2, 1, 1, 2, 3)
    (rows,) = class_attention(model, x)
    for place in range(6):
        row, column = divmod(place, 3)
        found = maps[:, 0, 0, row, column]
        assert torch.equal(found, rows[:, 0, 0, 1 + place])
    total = rows[..., 0] + maps.sum(dim=(-2, -1))
    torch.testing.assert_close(total, torch.ones(2, 1, 1))


def test_pooling_maps_highlight_the_attended_position():
    neck = dict(POOL, num_heads=2)
    model = classifier(RESNET, neck, channels=64)
    bright = torch.zeros(1, 64, 2, 3)
    pool = model.neck
    bright[0, :, 1, 2] = pool.layer.attn.k.weight.T @ pool.layer.attn.q(
        pool.layer.ln1(pool.cls_token[0, 0])
    )
    model.backbone.forward = lambda x: (bright,)
    (maps,) = pooling_maps(model, images(1, 64, 96))
    assert maps.shape == (1, 2, 1, 2, 3)
    assert maps[0].mean(dim=0).argmax() == 5


def test_pooled_draws_a_map_per_class():
    model, one = a_class(), one_view()
    (maps,) = pooling_maps(model, one.batch)
    assert maps.shape == (1, 1, 5, 2, 3)
    ones = torch.ones(1, 1, 5)
    torch.testing.assert_close(maps.sum(dim=(-2, -1)), ones)
    (heated,) = pooled(model, one, NAMES, [3, 1])
    assert [title.split('\n')[0] for title in heated.maps] == ['oak', 'beech']
    assert torch.equal(list(heated.maps.values())[0], maps[0, 0, 3])


def test_pooled_draws_a_row_per_layer_and_a_map_per_head():
    (heated,) = pooled(classifier(CONVNET), one_view(), NAMES, [])
    assert list(heated.maps) == ['attention']
    model, one = classifier(CAIT), one_view(32, 32)
    heated = pooled(model, one, NAMES, [])
    titles = [f'leaf\nclass layer {n}' for n in (1, 2)]
    assert [one_layer.title for one_layer in heated] == titles
    rows = class_attention(model, one.batch)
    for one_layer, of_layer in zip(heated, rows, strict=True):
        assert list(one_layer.maps) == ['head 1', 'head 2']
        second = of_layer[0, 1, 0, 1:].unflatten(0, (4, 4))
        assert torch.equal(one_layer.maps['head 2'], second)


TOME = dict(reducer=dict(type='mmclca.ToMe', keep_rate=0.5), reduce_at=(1,))


@pytest.mark.parametrize(
    'backbone, neck, channels, term',
    [
        (vit(1), None, 16, 'mmclca.PatchConvNet'),
        (RESNET, dict(type='GlobalAveragePooling'), 64, 'mmclca.PatchConvNet'),
        (dict(CONVNET, pooling='average'), None, 16, 'mmclca.PatchConvNet'),
        (dict(CAIT, **TOME), None, 16, '9 keys'),
        (CONVNET, None, 16, 'omit .classes.'),
    ],
    ids=str,
)
def test_models_without_maps_per_class_are_refused(
    backbone, neck, channels, term
):
    model = classifier(backbone, neck, channels=channels)
    with pytest.raises(ValueError, match=term):
        pooled(model, one_view(32, 32), NAMES, [1])
