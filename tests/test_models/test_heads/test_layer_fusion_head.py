# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from small_models import build, classifier, images, vit
from torch import nn

from mmclca.models import last_linear, set_last_linear

CHANNELS, LAYERS, CLASSES = 8, 3, 5


def head(**options):
    settings = dict(
        type='mmclca.LayerFusionHead',
        num_classes=CLASSES,
        in_channels=CHANNELS,
        num_layers=LAYERS,
    )
    return build({**settings, **options})


def normalized(x):
    return nn.LayerNorm(x.shape[-1], elementwise_affine=False)(x)


def test_layer_fusion_head_normalizes_parts_separately():
    feats = tuple(100**i * torch.randn(2, 2 * CHANNELS) for i in range(3))
    made = head(num_parts=2).pre_logits(feats)
    parts = [normalized(x) for feat in feats for x in feat.chunk(2, dim=-1)]
    torch.testing.assert_close(made, torch.cat(parts, dim=-1))


def test_layer_fusion_head_averages_maps():
    feats = (torch.randn(2, 4, 3, 3), torch.randn(2, 6))
    made = head(num_layers=2, in_channels=[4, 6]).pre_logits(feats)
    parts = normalized(feats[0].mean((2, 3))), normalized(feats[1])
    torch.testing.assert_close(made, torch.cat(parts, dim=-1))


def model(kind, **options):
    clca = classifier(vit(reduce_at=(3, 6, 9)), cla=True)
    fusion = dict(head=dict(type='mmclca.LayerFusionHead', num_layers=4))
    fusion['head'].update(num_classes=CLASSES, in_channels=16)
    plain = classifier(vit())
    token = dict(plain['head'], type='VisionTransformerClsHead')
    made = {
        'CLAHead': clca,
        'LayerFusionHead': dict(clca, **fusion),
        'LinearClsHead': plain,
        'VisionTransformerClsHead': dict(plain, head=token),
    }[kind]
    return build(made).eval()


@pytest.mark.parametrize(
    'kind',
    [
        'CLAHead',
        'LayerFusionHead',
        'LinearClsHead',
        'VisionTransformerClsHead',
    ],
)
def test_set_last_linear_maps_features_to_scores(kind):
    net, x = model(kind), images()
    features = net.extract_feat(x, stage='pre_logits')
    weight = torch.randn(CLASSES, features.shape[1])
    bias = torch.randn(CLASSES)
    set_last_linear(net.head, weight, bias)
    torch.testing.assert_close(net(x), features @ weight.T + bias)
    with pytest.raises(ValueError, match=r'\(5, 3\) .* does not match'):
        set_last_linear(net.head, weight[:, :3], bias)


def test_last_linear_is_refused_if_head_is_unknown():
    with pytest.raises(ValueError, match='Identity'):
        last_linear(nn.Identity())
