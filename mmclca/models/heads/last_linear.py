# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The last layer of a head, which a classifier in closed form replaces."""

import torch
from mmpretrain.models.heads import LinearClsHead, VisionTransformerClsHead
from torch import Tensor, nn

from .cla_head import CLAHead
from .layer_fusion_head import LayerFusionHead

# how to find it in the heads that have one
LAST = {
    CLAHead: lambda head: head.layers[-1],
    LayerFusionHead: lambda head: head.fc,
    LinearClsHead: lambda head: head.fc,
    VisionTransformerClsHead: lambda head: head.layers.head,
}


def last_linear(head: nn.Module) -> nn.Module:
    """The layer that makes class scores of ``head.pre_logits``.

    Args:
        head (nn.Module): Of a classifier.

    Returns:
        nn.Linear | nn.Conv1d: Its ``weight`` is (classes, D), or (classes,
        D, 1) of a point-wise convolution, its ``bias`` (classes,).

    Raises:
        ValueError: If the head is of a kind of which that is not known.
    """
    find = next((LAST[kind] for kind in type(head).__mro__ if kind in LAST), 0)
    if not find:
        known = ', '.join(sorted(kind.__name__ for kind in LAST))
        raise ValueError(
            f'{type(head).__name__} has no linear last layer that is known, '
            f'which a classifier in closed form could be: use one of {known}'
        )
    return find(head)


@torch.no_grad()
def set_last_linear(head: nn.Module, weight: Tensor, bias: Tensor) -> None:
    """Put a fitted classifier in the place of the last layer of a head.

    Args:
        head (nn.Module): Of a classifier, changed in place.
        weight (Tensor): (classes, D).
        bias (Tensor): (classes,).

    Raises:
        ValueError: See :func:`last_linear`, or if D or the number of classes
            is not that of the head.
    """
    layer = last_linear(head)
    if tuple(weight.shape) != tuple(layer.weight.shape[:2]):
        raise ValueError(
            f'a classifier {tuple(weight.shape)} (classes, features) does not '
            f'fit the last layer of the head, {tuple(layer.weight.shape[:2])}'
        )
    layer.weight.copy_(weight.reshape(layer.weight.shape))
    layer.bias.copy_(bias)
