# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Heads that keep features of the training images, to tell strangers."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from mmengine.model import BaseModel
from mmpretrain.models.heads import LinearClsHead
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import integer, one_of

from .base import last_linear
from .layer_heads import LayerFusionHead


def nearest_cosine(references: Tensor, features: Tensor) -> Tensor:
    """Return the cosine to the nearest reference (N, D), of unit length, of
    each feature (B, D): (B,)."""
    unit = F.normalize(features, dim=-1)
    # in this order the 8-bit quantization of ONNX leaves the product alone
    return (references @ unit.T).amax(dim=0)


def nearest_of_others(features: Tensor, splits: Sequence[tuple]) -> Tensor:
    """Compare images with others.

    Args:
        features (Tensor): Of N images, (N, D).
        splits (Sequence[tuple]): S times positions of some images, and of
            those that are compared with them.

    Returns:
        Tensor: The cosine to the nearest (S, N), NaN for those that are not
        compared.
    """
    unit = F.normalize(features, dim=1)
    found = torch.full((len(splits), len(unit)), torch.nan)
    for row, (others, own) in zip(found, splits, strict=True):
        row[own] = nearest_cosine(unit[others], unit[own])
    return found


class NearestHead(nn.Module):
    """Base of heads with references: features of the training images.

    Class scores are those of the head that it is mixed into.

    Args:
        num_references (int): Training images N.
        **head: Settings of that head.

    Raises:
        ValueError: If the number is no integer above 0.
    """

    def __init__(self, *, num_references: int, **head):
        super().__init__(**head)
        integer(num_references=num_references)
        channels = last_linear(self).in_features
        references = torch.zeros(num_references, channels)
        self.register_buffer('references', references)

    def nearest(self, feats: tuple[Tensor, ...]) -> Tensor:
        """What the head reads to the cosine of what its last layer reads to
        the nearest reference, (B,)."""
        return nearest_cosine(self.references, self.pre_logits(feats))


@MODELS.register_module()
class NearestFusionHead(NearestHead, LayerFusionHead):
    """:class:`LayerFusionHead` that also tells how near images are to those
    of the training, by :meth:`NearestHead.nearest`.

    Args:
        num_references (int): Training images.
        **head: Settings of :class:`LayerFusionHead`.
    """


@MODELS.register_module()
class NearestLinearHead(NearestHead, LinearClsHead):
    """mmpretrain's ``LinearClsHead`` that also tells how near images are to
    those of the training, by :meth:`NearestHead.nearest`.

    Args:
        num_references (int): Training images.
        **head: Settings of ``LinearClsHead``.
    """


# of what can be mixed with what
NEAREST_HEADS = {
    'LinearClsHead': 'mmclca.NearestLinearHead',
    'mmclca.LayerFusionHead': 'mmclca.NearestFusionHead',
}


@torch.no_grad()
def keep_references(model: BaseModel, features: Tensor) -> None:
    """Have the head of a model, and its config, keep features.

    Args:
        model (BaseModel): A classifier with its ``_config``.
        features (Tensor): What the last layer reads of the training images,
            (N, D).

    Raises:
        ValueError: If that is not known of the head.
    """
    head = model._config.model.head
    one_of(NEAREST_HEADS, head=head.type)
    nearest = NEAREST_HEADS[head.type]
    head.update(type=nearest, num_references=len(features))
    rebuild_head(model)
    model.head.references.copy_(F.normalize(features, dim=1))


def drop_references(model: BaseModel) -> None:
    """Undo :func:`keep_references`, if the head has any."""
    if isinstance(model.head, NearestHead):
        head = model._config.model.head
        (head.type,) = (x for x, y in NEAREST_HEADS.items() if y == head.type)
        head.pop('num_references')
        rebuild_head(model)


def rebuild_head(model: BaseModel, new: Sequence[str] = ()) -> None:
    """Build the head of the config; weights stay but for some new ones."""
    kept, device = model.head.state_dict(), next(model.parameters()).device
    model.head = MODELS.build(model._config.model.head).to(device).eval()
    kept = {name: kept[name] for name in kept if name not in new}
    model.head.load_state_dict(kept, strict=False)


class WithNearest(nn.Module):
    """A classifier whose head keeps references, to class scores and
    ``nearest``."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Images (B, 3, H, W) to (B, classes) and (B,)."""
        feats, head = self.model.extract_feat(images), self.model.head
        return head(feats), head.nearest(feats)


def with_nearest(model: nn.Module) -> nn.Module:
    """Return a model that also gives ``nearest``, where its head has it."""
    has = any(isinstance(part, NearestHead) for part in model.modules())
    return WithNearest(model) if has else model
