# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Maps of what pooling by class attention reads of images."""

from collections.abc import Sequence
from math import ceil

import torch
from torch import Tensor, nn

from mmclca.datasets.batches import View

from .figures import HeatMapRow

TOP = 3  # predicted classes to draw, unless some are named


@torch.no_grad()
def pooling_maps(model: nn.Module, images: Tensor) -> list[Tensor]:
    """Map what each class token reads of each place, by layer.

    The softmax itself, which needs no gradient and no fusion of layers:
    Touvron's thesis (2022), sections 3.6 and 5.3.1. What class tokens read
    of themselves is left out. The model is used in its present mode.

    Args:
        model (nn.Module): See
            :func:`class_attention`.
        images (Tensor): Preprocessed images, (B, 3, H, W).

    Returns:
        list[Tensor]: Of each class layer (B, heads, K, h, w), K being the
        number of classes with one query a class and 1 else.

    Raises:
        ValueError: If nothing pools by class attention, or the patches were
            reduced before it.
    """
    layers, hw = class_attention(model, images), _pooled_grid(model, images)
    places, (K, keys) = hw[0] * hw[1], layers[0].shape[-2:]
    if keys not in (places, K + places):
        raise ValueError(
            f'class attention has {keys} keys for {places} patches: set '
            'model.backbone.reducer=None and model.backbone.cache=None'
        )
    return [rows[..., -places:].unflatten(-1, hw) for rows in layers]


def class_attention(model: nn.Module, images: Tensor) -> list[Tensor]:
    """Read how much the class tokens of a model attend to each place.

    The model is used in its present mode; call ``eval()`` first.

    Args:
        model (nn.Module): A classifier whose backbone, or neck, has a method
            ``class_attention``: :class:`PatchConvNet`, :class:`CaiT`,
            :class:`AttentionPool` on any convolutional network.
        images (Tensor): Preprocessed images, (B, 3, H, W).

    Returns:
        list[Tensor]: Of each class layer the rows of its softmax, (B, heads,
        K, N) for K class tokens, with their own keys first where they read
        themselves.

    Raises:
        ValueError: If nothing in the model pools by class attention.
    """
    rows = []
    if hasattr(model.backbone, 'class_attention'):
        rows = model.backbone.class_attention(images)
    elif _pools_in_neck(model):
        rows = model.neck.class_attention(model.backbone(images))
    if not rows:
        raise ValueError(
            f'{type(model.backbone).__name__} does not pool by class '
            'attention: use mmclca.PatchConvNet, mmclca.CaiT or the neck '
            'mmclca.AttentionPool'
        )
    return rows


def _pooled_grid(model: nn.Module, images: Tensor) -> tuple[int, int]:
    """Find the height and width of the grid that is pooled."""
    if _pools_in_neck(model):
        return tuple(model.backbone(images)[-1].shape[-2:])
    sides = zip(images.shape[-2:], model.backbone.stride, strict=True)
    return tuple(ceil(pixels / patch) for pixels, patch in sides)


def _pools_in_neck(model: nn.Module) -> bool:
    return model.with_neck and hasattr(model.neck, 'class_attention')


def has_query_per_class(model: nn.Module) -> bool:
    """Return whether a model has a map for each of several classes."""
    parts = (part for part in model.modules() if hasattr(part, 'multiclass'))
    return any(part.multiclass for part in parts)


@torch.no_grad()
def pooled(
    model: nn.Module, one: View, names: Sequence[str], labels: Sequence[int]
) -> list[HeatMapRow]:
    """Map an image, a row for each class layer.

    Args:
        model (nn.Module): A classifier.
        one (View): The image.
        names (Sequence[str]): Names of the classes.
        labels (Sequence[int]): Classes to draw, with one query a class;
            empty: those with the highest scores.

    Raises:
        ValueError: See :func:`pooling_maps`, or if there are ``labels`` and
            one query for all classes.
    """
    maps = [layer[0] for layer in pooling_maps(model, one.batch)]
    if has_query_per_class(model):
        return [_class_row(model, one, maps[0].mean(dim=0), names, labels)]
    if labels:
        raise ValueError(
            f'{type(model.backbone).__name__} has one query for all classes: '
            'omit --classes, or train with multiclass'
        )
    rows = []
    for number, heads in enumerate(maps, start=1):
        titles = [f'head {i}' for i in range(1, len(heads) + 1)]
        titles = titles if len(heads) > 1 else ['attention']
        title = f'{one.title}\nclass layer {number}'
        title = title if len(maps) > 1 else one.title
        by_head = zip(titles, heads[:, 0], strict=True)
        rows.append(HeatMapRow(title, one.image, dict(by_head)))
    return rows


def _class_row(model, one: View, maps: Tensor, names, labels) -> HeatMapRow:
    """Name maps (K, h, w) of some classes, with their scores."""
    scores = model(one.batch, mode='tensor')[0].softmax(dim=-1)
    best = scores.topk(min(TOP, len(scores))).indices.tolist()
    titles = {
        label: f'{names[label]}\n{100 * scores[label]:.0f} %'
        for label in labels or best
    }
    found = {title: maps[label] for label, title in titles.items()}
    return HeatMapRow(one.title, one.image, found)
