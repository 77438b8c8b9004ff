# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which output of a classifier tells images apart."""

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
        Tensor: (B, C).
    """
    found = classifier.extract_feat(inputs, stage=stage)
    return found[-1] if isinstance(found, tuple) else found
