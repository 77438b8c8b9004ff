# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Copies that share parameters, for readers of a pass; joined branches."""

from collections import OrderedDict
from copy import copy

from mmpretrain.models.backbones import VisionTransformer
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import nn

from .reducible import Reducible
from .token_reduction_vit import TokenReductionViT


def fuse(model: nn.Module) -> nn.Module:
    """Join, in place, what backbones need not compute apart, for inference.

    Layers with n branches become plain layers of n x h heads, affine maps of
    ResMLP become a part of its linear layers. Outputs stay the same up to
    rounding; names of parameters do not, so that checkpoints of the model no
    longer fit. What has nothing to join stays as it is.

    Args:
        model (nn.Module): A classifier, or anything that has backbones in it.

    Returns:
        nn.Module: The model.
    """
    for backbone in fusible(model):
        backbone.fuse()
    return model


def fusible(model: nn.Module) -> list[BaseBackbone]:
    """Backbones with a method ``fuse``: it replaces modules in place.

    Args:
        model (nn.Module): See :func:`fuse`.
    """
    return [
        module
        for module in model.modules()
        if isinstance(module, BaseBackbone) and hasattr(module, 'fuse')
    ]


def as_reducible(backbone: nn.Module) -> Reducible:
    """Return the backbone, or mmpretrain's plain ViT as one that reduces
    nothing.

    Args:
        backbone (nn.Module): Any backbone.

    Returns:
        Reducible: It shares all parameters.

    Raises:
        ValueError: If it has no tokens that could be followed.
    """
    if isinstance(backbone, Reducible):
        return backbone
    if type(backbone) is VisionTransformer:
        return _over(backbone)
    raise ValueError(
        f'the backbone is a {type(backbone).__name__}, whose tokens cannot be '
        'followed: that takes a VisionTransformer or a backbone of mmclca '
        "that reduces tokens, such as dict(type='mmclca.TokenReductionViT', "
        '...)'
    )


def _over(vit: VisionTransformer) -> TokenReductionViT:
    own = TokenReductionViT.__new__(TokenReductionViT)
    vars(own).update(vars(_copy(vit)))
    own._parameters = dict(vit._parameters)
    own._load_state_dict_pre_hooks = OrderedDict()
    own.num_prefix = vit.num_extra_tokens
    own.with_cls_pos = True
    own.dist_token = own.register_tokens = None
    own.set_reduction()
    return own


def reduces(backbone: nn.Module) -> bool:
    """Return whether a backbone, of any kind, has a reducer that may
    reduce."""
    return isinstance(backbone, Reducible) and backbone.reduces


def shallow_copy(model: nn.Module) -> nn.Module:
    """Return a classifier that shares parameters with another one.

    Methods and modules of its backbone, which is a :class:`Reducible`, can
    be replaced; the model itself is left as it is.

    Args:
        model (nn.Module): A classifier.

    Raises:
        ValueError: See :func:`as_reducible`.
    """
    backbone = _copy(as_reducible(model.backbone))
    for compiled in ('forward', 'forward_tokens'):  # bound to the model
        vars(backbone).pop(compiled, None)
    backbone.with_cp = False  # a layer run anew would be seen twice
    copied = _copy(model)
    copied.backbone = backbone
    return copied


def _copy(module: nn.Module) -> nn.Module:
    copied = copy(module)
    copied._modules = dict(module._modules)  # copied as one object otherwise
    return copied
