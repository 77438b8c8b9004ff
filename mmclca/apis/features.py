# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features and class scores of image files, by a trained classifier."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from mmclca.models.retrievers.features import check_stage, feature_of

from .inferencer import TokenReductionInferencer
from .sources import prepared_batches


def extract_features(
    inferencer: TokenReductionInferencer,
    paths: Sequence[str],
    stage: str = 'pre_logits',
    batch_size: int = 32,
) -> tuple[Tensor, dict[int, str]]:
    """One feature an image.

    Args:
        inferencer (TokenReductionInferencer): The classifier.
        paths (Sequence[str]): Image files.
        stage (str): 'pre_logits' for what the last layer of the head reads:
            the aggregated features of CLA, or the last CLS without it;
            'backbone' for the last CLS in any case. Defaults to 'pre_logits'.
        batch_size (int): Images at a time. Defaults to 32.

    Returns:
        tuple[Tensor, dict[int, str]]: Features (N, C) of the images that can
        be read, and by position why others cannot.

    Raises:
        ValueError: If no image can be read, or features are not finite.
    """
    check_stage(stage)
    feature = partial(feature_of, inferencer.model, stage=stage)
    return _of_images(inferencer, paths, feature, batch_size)


def extract_logits(
    inferencer: TokenReductionInferencer,
    paths: Sequence[str],
    batch_size: int = 32,
) -> tuple[Tensor, dict[int, str]]:
    """Class scores of images before softmax.

    Args:
        inferencer (TokenReductionInferencer): The classifier.
        paths (Sequence[str]): Image files.
        batch_size (int): Images at a time. Defaults to 32.

    Returns:
        tuple[Tensor, dict[int, str]]: As of :func:`extract_features`, with
        scores (N, classes).
    """
    return _of_images(inferencer, paths, inferencer.model, batch_size)


@torch.no_grad()
def _of_images(inferencer, paths, function, batch_size):
    found, unread = [], {}
    batches = prepared_batches(inferencer.prepare, paths, batch_size)
    for _, inputs, reasons in batches:
        unread |= reasons
        if inputs:
            data = inferencer.model.data_preprocessor(inputs)
            found.append(function(data['inputs']).flatten(1).float().cpu())
    if not found:
        reasons = '; '.join(sorted(set(unread.values())))
        raise ValueError(f'none of {len(paths)} images can be read: {reasons}')
    features = torch.cat(found)
    broken = int((~features.isfinite()).any(dim=1).sum())
    if broken:
        raise ValueError(
            f'the model gives no finite numbers for {broken} of '
            f'{len(features)} images: its weights are broken, or did not '
            'converge'
        )
    return features, unread
