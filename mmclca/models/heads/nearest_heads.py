# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Heads that store training features to detect unknown classes."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.model import BaseModel
from mmpretrain.models.heads import LinearClsHead
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice, check_integer

from .base import last_linear
from .layer_heads import LayerFusionHead


def nearest_cosine(references: Tensor, features: Tensor) -> Tensor:
    """Return the cosine similarity to the nearest reference, (B,).

    The arguments are as for :func:`cosine_to_references`.
    """
    return cosine_to_references(references, features).amax(dim=0)


def cosine_to_references(references: Tensor, features: Tensor) -> Tensor:
    """Return the cosine similarities to all references, (N, B).

    Args:
        references (Tensor): Unit-length features, (N, D).
        features (Tensor): Features (B, D).
    """
    unit = F.normalize(features, dim=-1)
    # with the references first, 8-bit quantization by ONNX skips the product
    return references @ unit.T


def nearest_of_others(features: Tensor, splits: Sequence[tuple]) -> Tensor:
    """Compute the cosine similarity to the nearest other image, per split.

    Args:
        features (Tensor): Features of N images, (N, D), or (N, R, D) for R
            references per image, of which the first is compared.
        splits (Sequence[tuple]): S pairs of image indices: references, and the
            images compared with them.

    Returns:
        Tensor: Similarities (S, N), NaN for images that are not compared.
    """
    unit = F.normalize(features, dim=-1)
    unit = unit.reshape(len(unit), -1, unit.shape[-1])
    similarity = torch.full((len(splits), len(unit)), torch.nan)
    for row, (references, compared) in zip(similarity, splits, strict=True):
        stored = unit[references].flatten(0, 1)
        row[compared] = nearest_cosine(stored, unit[compared, 0])
    return similarity


class NearestHead(nn.Module):
    """Mixin for heads that store reference features of training images.

    It does not change the class scores.

    Args:
        num_references (int): Training images N.
        **head: Arguments of the other base class.

    Raises:
        Error: If the number is not a positive integer.
    """

    references: Tensor

    def __init__(self, *, num_references: int, **head):
        super().__init__(**head)
        check_integer(num_references=num_references)
        channels = last_linear(self).in_features
        references = torch.zeros(num_references, channels)
        self.register_buffer('references', references)

    def nearest(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Return the cosine similarity to the nearest reference, (B,)."""
        return nearest_cosine(self.references, self.pre_logits(feats))

    def similarities(
        self, feats: tuple[Tensor, ...], positions: Tensor
    ) -> Tensor:
        """Return the cosine similarities to R references, (B, R).

        Args:
            feats (tuple[Tensor]): Outputs of the backbone.
            positions (Tensor): Positions of the references (R,).
        """
        references = self.references[positions.to(self.references.device)]
        return cosine_to_references(references, self.pre_logits(feats)).T


@MODELS.register_module()
class NearestFusionHead(NearestHead, LayerFusionHead):
    """:class:`LayerFusionHead` with references, see :class:`NearestHead`.

    Args:
        num_classes (int): See :class:`LayerFusionHead`.
        in_channels (int | Sequence[int]): See :class:`LayerFusionHead`.
        num_layers (int): See :class:`LayerFusionHead`.
        num_parts (int): See :class:`LayerFusionHead`. Defaults to 1.
        topk (int | Sequence[int]): See :class:`LayerFusionHead`. Defaults to
            (1,).
        num_references (int): Training images.
        **head: See :class:`LayerFusionHead`.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int | Sequence[int],
        num_layers: int,
        num_parts: int = 1,
        topk: int | Sequence[int] = (1,),
        *,
        num_references: int,
        **head,
    ):
        super().__init__(
            num_references=num_references,
            num_classes=num_classes,
            in_channels=in_channels,
            num_layers=num_layers,
            num_parts=num_parts,
            topk=topk,
            **head,
        )


@MODELS.register_module()
class NearestLinearHead(NearestHead, LinearClsHead):
    """``LinearClsHead`` with references, see :class:`NearestHead`.

    Args:
        num_classes (int): Number of classes.
        in_channels (int): Channels of a feature.
        num_references (int): Training images.
        **head: Other arguments of ``LinearClsHead``.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        *,
        num_references: int,
        **head,
    ):
        super().__init__(
            num_references=num_references,
            num_classes=num_classes,
            in_channels=in_channels,
            **head,
        )


# type with references by type without
NEAREST_HEADS = {
    'LinearClsHead': 'mmclca.NearestLinearHead',
    'mmclca.LayerFusionHead': 'mmclca.NearestFusionHead',
}


@torch.no_grad()
def keep_references(model: BaseModel, features: Tensor) -> None:
    """Store reference features in the head of a model and update its config.

    Args:
        model (BaseModel): A classifier with its ``_config``.
        features (Tensor): Input features of the last layer for all training
            images, (N, D).

    Raises:
        Error: If the head lacks a variant with references.
    """
    head = model._config.model.head
    check_choice(NEAREST_HEADS, head=head.type)
    nearest = NEAREST_HEADS[head.type]
    head.update(type=nearest, num_references=len(features))
    rebuild_head(model)
    model.head.references.copy_(F.normalize(features, dim=1))


def drop_references(model: BaseModel) -> None:
    """Undo :func:`keep_references`, if the head stores references."""
    if isinstance(model.head, NearestHead):
        head = model._config.model.head
        (head.type,) = (x for x, y in NEAREST_HEADS.items() if y == head.type)
        head.pop('num_references')
        rebuild_head(model)


def rebuild_head(model: BaseModel, new: Sequence[str] = ()) -> None:
    """Rebuild the head from the config and keep weights not listed as new."""
    kept, device = model.head.state_dict(), next(model.parameters()).device
    model.head = MODELS.build(model._config.model.head).to(device).eval()
    kept = {name: kept[name] for name in kept if name not in new}
    model.head.load_state_dict(kept, strict=False)


class WithNearest(nn.Module):
    """Return class scores and similarity to the nearest reference."""

    def __init__(self, model: Any):
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Map images (B, 3, H, W) to (B, classes) and (B,)."""
        feats, head = self.model.extract_feat(images), self.model.head
        return head(feats), head.nearest(feats)


def with_nearest(model: nn.Module) -> nn.Module:
    """Return a model that also outputs ``nearest`` if its head can."""
    has = any(isinstance(part, NearestHead) for part in model.modules())
    return WithNearest(model) if has else model
