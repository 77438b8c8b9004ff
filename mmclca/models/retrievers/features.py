# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a classifier makes of images to compare them by."""

import os
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

STAGES = ('backbone', 'pre_logits')


def check_stage(stage: str) -> None:
    """Refuse a stage that is not there."""
    if stage not in STAGES:
        raise ValueError(f'stage={stage!r} is not one of {STAGES}')


def feature_of(classifier: nn.Module, inputs: Tensor, stage: str) -> Tensor:
    """One feature an image.

    Args:
        classifier (nn.Module): mmpretrain's or ours.
        inputs (Tensor): Preprocessed images (B, 3, H, W).
        stage (str): One of ``STAGES``.

    Returns:
        Tensor: (B, C). Of tokens (B, N, C), as a backbone with a
        distillation token gives them, the first: CLS.
    """
    found = classifier.extract_feat(inputs, stage=stage)
    feature = found[-1] if isinstance(found, tuple) else found
    return feature[:, 0] if feature.dim() == 3 else feature


def cosine_similarity(queries: Tensor, gallery: Tensor) -> Tensor:
    """Cosine of the angle between each query and each gallery feature.

    Args:
        queries (Tensor): Features (N, C).
        gallery (Tensor): Features (M, C).

    Returns:
        Tensor: (N, M), in -1 to 1. Nothing of size N x M x C is made.
    """
    return F.normalize(queries, dim=-1) @ F.normalize(gallery, dim=-1).T


def positions_of(paths: Iterable[str]) -> dict[str, list[int]]:
    """Positions of each file among some images, once links are followed."""
    found = {}
    for position, path in enumerate(paths):
        found.setdefault(os.path.realpath(path), []).append(position)
    return found


def hide_same_files(
    similarity: Tensor,
    paths: Iterable[str | None],
    positions: dict[str, list[int]],
) -> None:
    """Put minus infinity where a query and a gallery image are one file.

    Args:
        similarity (Tensor): (N, M), changed in place.
        paths (Iterable[str | None]): Files of the queries.
        positions (dict[str, list[int]]): Of the gallery, see
            :func:`positions_of`.
    """
    for row, path in zip(similarity, paths, strict=True):
        if path is not None:
            row[positions.get(os.path.realpath(path), [])] = -torch.inf
