# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Configs of the models that fit builds, and how they see photographs."""

from mmengine.config import Config

from mmclca.datasets.pipelines import evaluation_pipeline
from mmclca.models import Variant

from .architecture import VIT
from .weights import Pretrained

# of what has tokens that can be reduced
CLASSIFIERS = {VIT: 'mmclca.TokenReductionClassifier'}


def classifier_config(
    pretrained: Pretrained, variant: Variant, num_classes: int
) -> Config:
    """The config of a candidate, with the pipeline that it predicts by.

    Args:
        pretrained (Pretrained): The weights that it is for.
        variant (Variant): The model.
        num_classes (int): Classes of its head.

    Returns:
        Config: ``model`` and ``test_dataloader``, and no weights.
    """
    size = variant.img_size
    plain = plain_model(pretrained, size, num_classes)
    dataset = dict(type='CustomDataset', pipeline=evaluation_pipeline(size))
    return Config(
        dict(
            default_scope='mmpretrain',
            model=variant.apply(plain),
            test_dataloader=dict(dataset=dataset),
        )
    )


def plain_model(
    pretrained: Pretrained, img_size: int, num_classes: int
) -> dict:
    """The whole network with a linear head.

    Args:
        pretrained (Pretrained): The weights that it is for.
        img_size (int): Side of an image in pixels.
        num_classes (int): Classes of its head.
    """
    backbone = dict(pretrained.backbone, img_size=img_size)
    width = pretrained.backbone['arch']['embed_dims']
    head = dict(
        type='LinearClsHead', num_classes=num_classes, in_channels=width
    )
    preprocessor = dict(
        mean=[*pretrained.mean], std=[*pretrained.std], to_rgb=True
    )
    return dict(
        type=CLASSIFIERS.get(backbone['type'], 'ImageClassifier'),
        data_preprocessor=preprocessor,
        backbone=backbone,
        head=head,
    )
