# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Configs of the models built by ``fit`` from pretrained weights."""

from typing import Any

from mmengine.config import Config

from mmclca.datasets.pipelines import evaluation_pipeline
from mmclca.models import Variant
from mmclca.models.backbones.timm_stages import TimmStages
from mmclca.utils.meta_device import on_meta_device

from .record_parts import require_part
from .weights import PretrainedWeights


def build_config(
    pretrained: PretrainedWeights, variant: Variant, num_classes: int
) -> Config:
    """Build the config of a variant: its model and test pipeline."""
    img_size = require_part(variant.img_size, 'img_size')
    plain = build_plain_config(pretrained, img_size, num_classes)
    pipeline = evaluation_pipeline(img_size)
    return Config(
        dict(
            default_scope='mmpretrain',
            model=variant.apply(plain),
            test_dataloader=dict(
                dataset=dict(type='CustomDataset', pipeline=pipeline)
            ),
        )
    )


def build_plain_config(
    pretrained: PretrainedWeights, img_size: int, num_classes: int
) -> dict[str, Any]:
    """Build the model config of the full network with a linear head."""
    backbone = dict(pretrained.backbone, img_size=img_size)
    model_type = 'ImageClassifier'
    if pretrained.is_vit:
        model_type = 'mmclca.TokenReductionClassifier'
    mean, std = map(list, pretrained.pixels)
    return dict(
        type=model_type,
        data_preprocessor=dict(mean=mean, std=std, to_rgb=True),
        backbone=backbone,
        head=_build_head(pretrained, backbone, num_classes),
    )


def _build_head(
    pretrained: PretrainedWeights, backbone: dict, num_classes: int
) -> dict[str, Any]:
    """Build the head: linear, or over all stages of a timm network."""
    if pretrained.sizes:
        return dict(
            type='LinearClsHead',
            in_channels=pretrained.sizes.embed_dims,
            num_classes=num_classes,
        )
    with on_meta_device():
        channels = TimmStages(backbone['arch']).channels
    return dict(
        type='mmclca.LayerFusionHead',
        in_channels=channels,
        num_layers=len(channels),
        num_parts=2,
        num_classes=num_classes,
    )
