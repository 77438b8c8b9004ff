# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Base class of heads; checks and the last layer of any head."""

from collections.abc import Sequence
from typing import Any

import torch
from mmpretrain.models.heads import (
    ClsHead,
    LinearClsHead,
    VisionTransformerClsHead,
)
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.utils.messages import check_integer

# settings of any head that another one keeps
COMMON_SETTINGS = ('num_classes', 'loss', 'topk', 'cal_acc')
# last layer of mmpretrain's linear heads
LINEAR_HEADS = {LinearClsHead: 'fc', VisionTransformerClsHead: 'layers.head'}


class Head(ClsHead):
    """Base class for heads: mmpretrain's ``ClsHead`` with checked sizes.

    Its class attributes and methods describe a head to classifiers, teachers
    and probes, so a new head needs no change elsewhere.

    Args:
        num_classes (int): Number of classes.
        in_channels (int): Input feature channels C.
        topk (int | Sequence[int]): Values of k for the top-k accuracy.
            Defaults to (1,).
        **head: ``loss``, ``cal_acc`` and ``init_cfg`` for mmpretrain's
            ``ClsHead``.

    Raises:
        Error: If a size is not a positive integer.
    """

    last_layer: str | None = None  # layer that maps pre_logits to scores
    accepts_dist_token = False  # whether features may be (B, 2, C)
    has_class_loss = False  # whether an overridden loss uses class scores

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        topk: int | Sequence[int] = (1,),
        **head,
    ):
        topk = (topk,) if isinstance(topk, int) else topk
        super().__init__(topk=topk, **head)
        check_integer(num_classes=num_classes, in_channels=in_channels)
        self.num_classes = num_classes
        self.in_channels = in_channels

    @classmethod
    def replace(
        cls, head: dict | None, backbone: nn.Module, **sizes: int
    ) -> dict:
        """Return the config of this head in place of another one.

        Args:
            head (dict, optional): Config of the other head, whose classes,
                loss and accuracies are kept.
            backbone (nn.Module): A :class:`Reducible` backbone.
            **sizes: Further settings of this head, such as ``num_layers``.

        Raises:
            Error: If this head cannot replace the other one.
        """
        kept = {k: v for k, v in (head or {}).items() if k in COMMON_SETTINGS}
        return dict(
            kept,
            type=f'mmclca.{cls.__name__}',
            in_channels=backbone.embed_dims,
            **sizes,
        )

    def check(self, backbone: nn.Module, with_neck: bool) -> None:
        """Raise if the outputs of a :class:`Reducible` backbone do not fit.

        Args:
            backbone (nn.Module): The backbone.
            with_neck (bool): Whether a neck lies between backbone and head.

        Raises:
            Error: If the dimensions or the number of layers differ.
        """
        check_channels(backbone, self)

    def check_layers(self, backbone) -> None:
        """Raise if the backbone does not return ``num_layers`` layers."""
        depth = len(backbone.all_layers)
        num_layers = sum(i in backbone.out_indices for i in range(depth))
        if self.num_layers != num_layers:
            raise Error(
                f'{type(self).__name__}(num_layers={self.num_layers}) does '
                'not match the backbone, whose '
                f'out_indices={tuple(backbone.out_indices)} selects '
                f'{num_layers} of layers 0 to {depth - 1}'
            )

    def token_scores(
        self, feats: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor | None]:
        """Return scores (B, K) of CLS and the distillation token or None."""
        return self(feats), None


def check_channels(backbone: nn.Module, head) -> None:
    """Raise if ``in_channels`` of a head differs from ``embed_dims``."""
    if head.in_channels != backbone.embed_dims:
        raise Error(
            f'{type(head).__name__}(in_channels={head.in_channels}) does not '
            f'match the backbone; set in_channels={backbone.embed_dims}'
        )


def check_head(
    backbone: nn.Module, head: nn.Module | None, with_neck: bool
) -> None:
    """Raise if a head does not fit a :class:`Reducible` backbone."""
    is_linear = isinstance(head, tuple(LINEAR_HEADS))
    accepts = head is None
    if isinstance(head, Head):
        head.check(backbone, with_neck)
        accepts = head.accepts_dist_token
    elif is_linear and not with_neck:
        check_channels(backbone, head)
    if not backbone.is_distilled or accepts:
        return
    if is_linear or backbone.out_type == 'prefix':
        raise Error(
            f'{type(head).__name__} does not use the distillation token '
            '(dist_token=True); use mmclca.DistilledHead'
        )


def has_class_loss(head_class: Any) -> bool:
    """Return whether a type of head computes its loss from class scores."""
    if issubclass(head_class, Head) and head_class.has_class_loss:
        return True
    if not issubclass(head_class, ClsHead):
        return False
    return head_class.loss is ClsHead.loss


def replace_by_linear(head: dict, backbone: nn.Module) -> dict:
    """Return the config of mmpretrain's linear head in place of another one.

    Args:
        head (dict): Config of the other head.
        backbone (nn.Module): A :class:`Reducible` backbone.
    """
    return dict(
        Head.replace(head, backbone),
        type='VisionTransformerClsHead',
        init_cfg=None,
    )


def last_linear(head: nn.Module) -> nn.Module:
    """Return the layer that maps ``head.pre_logits`` to class scores.

    Args:
        head (nn.Module): Classifier head.

    Returns:
        nn.Linear | nn.Conv1d: ``weight`` has the shape (classes, D), or
        (classes, D, 1) for a point-wise convolution, and ``bias`` (classes,).

    Raises:
        Error: If the type of the head is not supported.
    """
    name = head.last_layer if isinstance(head, Head) else None
    for head_class, layer in LINEAR_HEADS.items():
        if isinstance(head, head_class):
            name = layer
    if name is None:
        raise Error(
            f'cannot fit the last layer of {type(head).__name__} in closed '
            'form; use LinearClsHead, CLAHead or LayerFusionHead'
        )
    return head.get_submodule(name)


@torch.no_grad()
def set_last_linear(head: nn.Module, weight: Tensor, bias: Tensor) -> None:
    """Copy a fitted classifier to the last layer of a head.

    Args:
        head (nn.Module): Classifier head, changed in place.
        weight (Tensor): (classes, D).
        bias (Tensor): (classes,).

    Raises:
        Error: See :func:`last_linear`, or if the shapes differ.
    """
    layer: Any = last_linear(head)
    if tuple(weight.shape) != tuple(layer.weight.shape[:2]):
        raise Error(
            f'a classifier of shape {tuple(weight.shape)} (classes, features) '
            f'does not match the last layer, {tuple(layer.weight.shape[:2])}'
        )
    layer.weight.copy_(weight.reshape(layer.weight.shape))
    layer.bias.copy_(bias)
