# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Configs of the models that fit builds, and how they see photographs."""

from mmengine.config import Config

from .architecture import VIT
from .candidates import Candidate
from .weights import Pretrained

READ = dict(type='mmclca.LoadPhotograph')
# of what has tokens that can be reduced
CLASSIFIERS = {VIT: 'mmclca.TokenReductionClassifier'}
# of the side that images are resized to, what is cropped to
CROP = 0.875


def classifier_config(
    pretrained: Pretrained, candidate: Candidate, num_classes: int
) -> Config:
    """The config of a candidate, with the pipeline that it predicts by.

    Args:
        pretrained (Pretrained): The weights that it is for.
        candidate (Candidate): The model.
        num_classes (int): Classes of its head.

    Returns:
        Config: ``model`` and ``test_dataloader``, and no weights.
    """
    size = candidate.img_size
    plain = plain_model(pretrained, size, num_classes)
    pipeline = [READ, resize(size), centre(size), dict(type='PackInputs')]
    dataset = dict(type='CustomDataset', pipeline=pipeline)
    return Config(
        dict(
            default_scope='mmpretrain',
            model=candidate.apply(plain),
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


def resize(img_size: int) -> dict:
    """A step of a pipeline: a square a little larger than is cropped to.

    Args:
        img_size (int): Side of the crop in pixels.
    """
    side = int(img_size / CROP)
    return dict(
        type='Resize',
        scale=(side, side),
        backend='pillow',
        interpolation='bicubic',
    )


def centre(img_size: int) -> dict:
    """A step of a pipeline: the middle."""
    return dict(type='CenterCrop', crop_size=img_size)
