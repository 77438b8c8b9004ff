# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from torch import nn

from mmclca.models.selfsup import moco_v3_loss
from mmclca.registry import MODELS

TAU = 0.2


def test_moco_v3_loss_equals_mmpretrain():
    head = dict(
        type='MoCoV3Head',
        predictor=dict(type='LinearNeck', in_channels=8, out_channels=8),
        loss=dict(type='CrossEntropyLoss', loss_weight=2 * TAU),
        temperature=TAU,
    )
    built = MODELS.build(head)
    built.predictor = nn.Identity()
    q1, q2, k1, k2 = torch.randn(4, 6, 8)
    expected = built.loss(q1, k2) + built.loss(q2, k1)
    torch.testing.assert_close(moco_v3_loss(q1, q2, k1, k2, TAU), expected)
