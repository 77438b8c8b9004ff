# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import matplotlib.figure
import numpy as np
import torch
from torch import Tensor

from mmclca.models.tokens import Appended, patch_weights


def survivor_maps(
    trace: list, batch_size: int, hw: tuple[int, int]
) -> list[Tensor]:
    """For each reduction, how much of each patch one token still carries.

    Args:
        trace (list): ``Tokens.trace`` of a forward pass.
        batch_size (int): Images of that pass.
        hw (tuple[int, int]): Height and width of the grid of patches.

    Returns:
        list[Tensor]: A map (B, h, w) a reduction: 1 where the patch has a
        token of its own, the largest weight in a mixed token where it is
        fused or merged, 0 where it is dropped.
    """
    num_patches = hw[0] * hw[1]
    maps = []
    for step, record in enumerate(trace, start=1):
        if not isinstance(record, Appended):
            weights = patch_weights(trace[:step], batch_size, num_patches)
            maps.append(weights.amax(dim=1).reshape(batch_size, *hw))
    return maps


def veil(image: np.ndarray, survivors: Tensor) -> np.ndarray:
    """Fade the patches of an image that have no token of their own.

    Args:
        image (np.ndarray): RGB image (H, W, 3), uint8.
        survivors (Tensor): One map (h, w) of :func:`survivor_maps`.

    Returns:
        np.ndarray: Image of the same size, uint8.
    """
    height, width = image.shape[:2]
    kept = (survivors >= 1).to(torch.float32)[None, None]
    kept = torch.nn.functional.interpolate(kept, size=(height, width))
    kept = kept[0, 0, :, :, None].numpy()
    grey = np.full_like(image, 205)
    faded = 0.12 * image + 0.88 * grey
    return (kept * image + (1 - kept) * faded).astype(np.uint8)


def draw_survivors(
    images: Sequence[np.ndarray],
    maps: list[Tensor],
    out: str,
    titles: Sequence[str],
    stages: Sequence[str],
) -> None:
    """Draw which patches survive each stage, one row an image.

    Args:
        images (Sequence[np.ndarray]): RGB images as the model saw them,
            (H, W, 3), uint8.
        maps (list[Tensor]): Maps (B, h, w) of :func:`survivor_maps`.
        out (str): Picture to write.
        titles (Sequence[str]): What to write beside each image.
        stages (Sequence[str]): What to write above each map.
    """
    figure = matplotlib.figure.Figure(
        figsize=(2.1 * (1 + len(maps)), 2.15 * len(images) + 0.3),
        layout='constrained',
    )
    axes = figure.subplots(len(images), 1 + len(maps), squeeze=False)
    for row, image, title in zip(axes, images, titles, strict=True):
        row[0].set_ylabel(title, fontsize=9)
        row[0].imshow(image)
    for column, (stage, survivors) in enumerate(
        zip(stages, maps, strict=True), start=1
    ):
        for row, image, one in zip(axes, images, survivors, strict=True):
            row[column].imshow(veil(image, one.cpu()))
        share = 100 * (survivors >= 1).float().mean().item()
        axes[0, column].set_title(f'{stage}\n{share:.0f} % kept', fontsize=9)
    axes[0, 0].set_title('image\nall patches', fontsize=9)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    figure.savefig(out, dpi=110)
