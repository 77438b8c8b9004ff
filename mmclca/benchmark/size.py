# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How large models and their images are."""

from dataclasses import dataclass

import torch
from mmpretrain.models.backbones import VisionTransformer
from mmpretrain.models.utils import to_2tuple

from mmclca.models import as_reducible
from mmclca.models.from_config import class_of
from mmclca.registry import MODELS

KEYS = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')
ANY_SIZE = 224  # of images for models that take any


@dataclass(frozen=True)
class Images:
    """What a model of any architecture takes.

    Args:
        name (str): That of the architecture.
        img_size (tuple[int, int]): Height and width of an image in pixels.
    """

    name: str
    img_size: tuple[int, int]

    @property
    def pixels(self) -> str:
        """Side of an image, or its height and width."""
        height, width = self.img_size
        return str(height) if height == width else f'{height} x {width}'


@dataclass(frozen=True)
class Size(Images):
    """Size of a vision transformer and of its images.

    Args:
        name (str): The ``arch`` of ``VisionTransformer``, or 'channels x
            layers' for one of its own.
        img_size (tuple[int, int]): Height and width of an image in pixels.
        embed_dims (int): Channels C.
        num_layers (int): Layers; those with parallel branches count as many
            times as they have branches.
        num_heads (int): Heads H.
        feedforward_channels (int): Channels within the FFN.
        patch_size (int): Side of a patch in pixels. Defaults to 16.
        num_classes (int): Classes. Defaults to 80.
    """

    embed_dims: int
    num_layers: int
    num_heads: int
    feedforward_channels: int
    patch_size: int = 16
    num_classes: int = 80

    @classmethod
    def of_arch(cls, arch: str, img_size: int) -> 'Size':
        """Of an ``arch`` of mmpretrain's ``VisionTransformer``."""
        settings = {k: VisionTransformer.arch_zoo[arch][k] for k in KEYS}
        return cls(arch, (img_size, img_size), **settings)

    @classmethod
    def of_config(cls, model: dict) -> 'Size':
        """Of the config of a classifier over a ``VisionTransformer``."""
        with torch.device('meta'):
            backbone = MODELS.build(model['backbone'])
        arch = model['backbone'].get('arch', 'base')
        settings = {k: backbone.arch_settings[k] for k in KEYS}
        branches = model['backbone'].get('branches', 1)
        settings['num_layers'] *= branches
        own = '{embed_dims} x {num_layers}'.format(**settings)
        (side,) = set(as_reducible(backbone).stride)
        return cls(
            arch if isinstance(arch, str) and branches == 1 else own,
            tuple(backbone.img_size),
            **settings,
            patch_size=side,
            num_classes=model['head']['num_classes'],
        )

    @property
    def arch(self) -> dict:
        """The ``arch`` of a ``VisionTransformer`` of this size."""
        return {key: vars(self)[key] for key in KEYS}


def size_of(model: dict) -> Images:
    """Size of a classifier, a :class:`Size` where it is a ViT.

    Args:
        model (dict): Config of a classifier.

    Raises:
        ValueError: If it has no head.
    """
    if 'model_name' in model:  # a TimmClassifier
        return _images(model['model_name'], model)
    kind = class_of(model['backbone'])
    if not model.get('head'):
        raise ValueError('the model has no head: nothing is classified')
    if issubclass(kind, VisionTransformer):
        return Size.of_config(model)
    return _images(kind.__name__, model['backbone'])


def _images(name: str, settings: dict) -> Images:
    return Images(name, to_2tuple(settings.get('img_size', ANY_SIZE)))
