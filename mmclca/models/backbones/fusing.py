# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import nn


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
