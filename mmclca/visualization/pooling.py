# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Attention maps for pooling by class attention."""

from collections.abc import Sequence
from math import ceil

import torch
from mmpretrain.models.classifiers import ImageClassifier
from torch import Tensor

from mmclca.datasets.batches import View
from mmclca.errors import Error

from .figures import HeatMapRow

TOP = 3  # default number of classes to draw


@torch.no_grad()
def pooling_maps(model: ImageClassifier, images: Tensor) -> list[Tensor]:
    """Compute class-token attention to image positions, by layer.

    The softmax itself, without gradients or layer fusion: Touvron's thesis
    (2022), sections 3.6 and 5.3.1. Attention between class tokens is omitted.
    The model keeps its mode.

    Args:
        model (ImageClassifier): See :func:`class_attention`.
        images (Tensor): Preprocessed images, (B, 3, H, W).

    Returns:
        list[Tensor]: (B, heads, K, h, w) per class layer; K is the number of
        classes with one query per class, else 1.

    Raises:
        Error: If the model does not pool by class attention, or patches
            were reduced before.
    """
    layers = class_attention(model, images)
    if _pools_in_neck(model):
        hw = tuple(model.backbone(images)[-1].shape[-2:])
    else:
        sides = zip(images.shape[-2:], model.backbone.stride, strict=True)
        hw = tuple(ceil(pixels / patch) for pixels, patch in sides)
    places, (K, keys) = hw[0] * hw[1], layers[0].shape[-2:]
    if keys not in (places, K + places):
        raise Error(
            f'class attention has {keys} keys for {places} patches: set '
            'model.backbone.reducer=None and model.backbone.cache=None'
        )
    return [rows[..., -places:].unflatten(-1, hw) for rows in layers]


def class_attention(model: ImageClassifier, images: Tensor) -> list[Tensor]:
    """Compute the class-token attention in a model.

    The model keeps its mode; call ``eval()`` first.

    Args:
        model (ImageClassifier): A classifier whose backbone, or neck, has a
            method ``class_attention``: :class:`PatchConvNet`, :class:`CaiT`,
            :class:`AttentionPool` on any convolutional network.
        images (Tensor): Preprocessed images, (B, 3, H, W).

    Returns:
        list[Tensor]: Softmax rows (B, heads, K, N) per class layer, for K
        class tokens; their own keys, if any, come first.

    Raises:
        Error: If the model does not pool by class attention.
    """
    rows = []
    if hasattr(model.backbone, 'class_attention'):
        rows = model.backbone.class_attention(images)
    elif _pools_in_neck(model):
        rows = model.neck.class_attention(model.backbone(images))
    if not rows:
        raise Error(
            f'{type(model.backbone).__name__} does not pool by class '
            'attention: use mmclca.PatchConvNet, mmclca.CaiT or the neck '
            'mmclca.AttentionPool'
        )
    return rows


def _pools_in_neck(model: ImageClassifier) -> bool:
    return model.with_neck and hasattr(model.neck, 'class_attention')


def has_query_per_class(model: ImageClassifier) -> bool:
    """Return whether a model has one map per class."""
    parts = (part for part in model.modules() if hasattr(part, 'multiclass'))
    return any(part.multiclass for part in parts)


@torch.no_grad()
def pooled(
    model: ImageClassifier,
    view: View,
    names: Sequence[str],
    labels: Sequence[int],
) -> list[HeatMapRow]:
    """Compute attention maps for an image, one row per class layer.

    Args:
        model (ImageClassifier): A classifier.
        view (View): The image.
        names (Sequence[str]): Class names.
        labels (Sequence[int]): Classes to draw, for one query per class;
            empty: the classes with the highest scores.

    Raises:
        Error: See :func:`pooling_maps`; or for ``labels`` with a single
            query for all classes.
    """
    maps = [layer[0] for layer in pooling_maps(model, view.batch)]
    if has_query_per_class(model):
        return [_class_row(model, view, maps[0].mean(dim=0), names, labels)]
    if labels:
        raise Error(
            f'{type(model.backbone).__name__} has one query for all classes: '
            'omit `classes`, or train with multiclass'
        )
    rows = []
    for number, heads in enumerate(maps, start=1):
        titles = [f'head {i}' for i in range(1, len(heads) + 1)]
        titles = titles if len(heads) > 1 else ['attention']
        title = f'{view.title}\nclass layer {number}'
        title = title if len(maps) > 1 else view.title
        by_head = zip(titles, heads[:, 0], strict=True)
        rows.append(HeatMapRow(title, view.image, dict(by_head)))
    return rows


def _class_row(model, view: View, maps: Tensor, names, labels) -> HeatMapRow:
    """Select maps (K, h, w) for some classes, titled with their scores."""
    scores = model(view.batch, mode='tensor')[0].softmax(dim=-1)
    best = scores.topk(min(TOP, len(scores))).indices.tolist()
    titles = {
        label: f'{names[label]}\n{scores[label]:.0%}'
        for label in labels or best
    }
    maps_by_title = {title: maps[label] for label, title in titles.items()}
    return HeatMapRow(view.title, view.image, maps_by_title)
