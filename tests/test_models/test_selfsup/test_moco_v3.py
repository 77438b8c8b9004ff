# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from small_models import arch
from torch import nn

from mmclca.models.selfsup import moco_v3_loss
from mmclca.registry import MODELS

TAU = 0.2


def head(predictor):
    loss = dict(type='CrossEntropyLoss', loss_weight=2 * TAU)
    return dict(
        type='MoCoV3Head', predictor=predictor, loss=loss, temperature=TAU
    )


def test_moco_v3_loss_equals_mmpretrain():
    built = MODELS.build(
        head(dict(type='LinearNeck', in_channels=8, out_channels=8))
    )
    built.predictor = nn.Identity()
    q1, q2, k1, k2 = torch.randn(4, 6, 8)
    expected = built.loss(q1, k2) + built.loss(q2, k1)
    torch.testing.assert_close(moco_v3_loss(q1, q2, k1, k2, TAU), expected)


def test_moco_v3_trains_patch_embedding_if_not_frozen():
    """The larger models of the paper freeze the patch embedding."""
    neck = dict(type='NonLinearNeck', hid_channels=8, out_channels=8)
    model = MODELS.build(
        dict(
            type='MoCoV3',
            backbone=dict(
                type='MoCoV3ViT',
                arch=arch(2),
                img_size=32,
                patch_size=16,
                stop_grad_conv1=False,
            ),
            neck=dict(neck, in_channels=16, with_avg_pool=False),
            head=head(dict(neck, in_channels=8, with_avg_pool=False)),
        )
    )
    model.init_weights()
    views = [torch.randn(4, 3, 32, 32) for _ in range(2)]
    model.loss(views, None)['loss'].backward()
    assert model.backbone.patch_embed.projection.weight.grad.abs().sum() > 0
    assert not model.backbone.pos_embed.requires_grad
