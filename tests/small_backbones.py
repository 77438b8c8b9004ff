# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Small models with every registered backbone."""

import toy_backbones  # noqa: F401, registers them
from small_models import CACHE, PATCH_CONVNET, RESMLP, arch, vit

REDUCTION = dict(
    reducer=dict(type='mmclca.EViT', keep_rate=0.5),
    reduce_at=(1,),
    cache=CACHE,
)
SMALL = dict(arch=arch(3, 24), img_size=32, patch_size=8)
VIT = dict(vit(3, **REDUCTION), arch=arch(3, 24))
REGISTERS = dict(num_registers=2, branches=2)
BACKBONES = dict(  # for images with 32 x 32 pixels
    reducible=dict(REDUCTION, type='mmclca.ToyReducible'),
    vit=dict(VIT, rel_pos_bias=True),
    hmlp=dict(VIT, patch_size=16, stem=dict(type='mmclca.HMLPStem')),
    distilled=dict(VIT, dist_token=True, **REGISTERS),
    cait=dict(
        SMALL,
        type='mmclca.CaiT',
        num_class_layers=1,
        reducer=dict(type='mmclca.ToMe', keep_rate=0.5),
        reduce_at=(1,),
        cache=dict(CACHE, num_tokens=0),
    ),
    resmlp=RESMLP,
    patchconvnet=dict(PATCH_CONVNET, arch=dict(embed_dims=24, num_layers=2)),
    transfg=dict(SMALL, type='mmclca.TransFG', stride=6),
    ffvt=dict(SMALL, type='mmclca.FFVT', num_tokens=3),
    sim_trans=dict(SMALL, type='mmclca.SIMTrans'),
    timm=dict(type='mmclca.TimmStages', arch='test_convnext'),
    timm_vit=dict(
        REDUCTION, type='mmclca.TimmViT', arch='test_vit', img_size=32, depth=3
    ),
    plain=dict(type='mmclca.ToyPlain'),
)
HEADS = dict(
    distilled=dict(type='mmclca.DistilledHead'),
    sim_trans=dict(type='mmclca.SIMTransHead'),
    timm=dict(
        type='mmclca.LayerFusionHead',
        in_channels=[24, 32, 48, 64],
        num_layers=4,
    ),
    timm_vit=dict(in_channels=64),
)


def model_of(kind):
    """Classifier config with a backbone."""
    return with_head(BACKBONES[kind], **HEADS.get(kind, {}))


def with_head(backbone, **head):
    """Classifier config with a backbone of 24 channels."""
    head = dict(type='LinearClsHead', num_classes=4, in_channels=24) | head
    return dict(type='ImageClassifier', backbone=backbone, head=head)
