# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""An exported model answers as the model does, or it is not kept."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

TOLERANCE = 1e-4
BATCH_SIZES = (1, 3)


def noise(batch: int, size: tuple[int, int]) -> Tensor:
    """Images of noise, always the same ones, (B, 3, H, W)."""
    generator = torch.Generator().manual_seed(batch)
    return torch.randn(batch, 3, *size, generator=generator)


@torch.inference_mode()
def check_logits(
    model: nn.Module,
    exported: Callable[[Tensor], Tensor],
    size: tuple[int, int],
) -> float:
    """Compare logits in float32 at two batch sizes.

    Args:
        model (nn.Module): The classifier, in evaluation mode.
        exported (Callable): Gives the logits (B, classes) of images.
        size (tuple[int, int]): Height and width of an image.

    Returns:
        float: The largest difference.

    Raises:
        ValueError: If logits differ by more than 1e-4, relative and
            absolute.
    """
    largest = 0.0
    for batch in BATCH_SIZES:
        images = noise(batch, size)
        expected, found = model(images), exported(images)
        error = (found - expected).abs()
        largest = max(largest, error.max().item())
        if not (error <= TOLERANCE * (1 + expected.abs())).all():
            raise ValueError(
                f'the exported model does not answer as PyTorch does: in a '
                f'batch of {batch} logits differ by up to {error.max():.2g}, '
                f'allowed is {TOLERANCE:g}, relative and absolute. No file '
                'is left'
            )
    return largest
