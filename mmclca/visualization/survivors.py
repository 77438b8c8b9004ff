# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import matplotlib.figure
import numpy as np
import torch
from torch import Tensor

from mmclca.models.reduction.trace import Appended, patch_weights

GREY = 205
OWN = 0.999  # above it, a patch has a token of its own


def stage_weights(
    trace: list, batch_size: int, num_patches: int, num_prefix: int = 1
) -> list[Tensor]:
    """What the tokens that each reduction leaves stand for.

    Args:
        trace (list): ``Tokens.trace`` of a forward pass.
        batch_size (int): Images of that pass.
        num_patches (int): Patches P of an image.
        num_prefix (int): Tokens before the patches. Defaults to 1, CLS.

    Returns:
        list[Tensor]: Weights (B, N, P) a reduction, of the patches of the
        image in each token; see :func:`.trace.patch_weights`.
        Stages before it are in them.
    """
    return [
        patch_weights(trace[:step], batch_size, num_patches, num_prefix)
        for step, record in enumerate(trace, start=1)
        if not isinstance(record, Appended)
    ]


def survivor_maps(
    trace: list, batch_size: int, hw: tuple[int, int], num_prefix: int = 1
) -> list[Tensor]:
    """For each reduction, how much of each patch one token still carries.

    Args:
        trace (list): ``Tokens.trace`` of a forward pass.
        batch_size (int): Images of that pass.
        hw (tuple[int, int]): Height and width of the grid of patches.
        num_prefix (int): Tokens before the patches. Defaults to 1, CLS.

    Returns:
        list[Tensor]: A map (B, h, w) a stage: 1 where the patch has a token
        of its own (a little less in DPC-KNN), the largest weight in a mixed
        token where it is fused or merged, 0 where it is dropped.
    """
    weights = stage_weights(trace, batch_size, hw[0] * hw[1], num_prefix)
    return [w.amax(dim=1).unflatten(1, hw) for w in weights]


def assignment_maps(
    trace: list, batch_size: int, hw: tuple[int, int], num_prefix: int = 1
) -> list[Tensor]:
    """For each reduction, the token that each patch mostly goes into.

    Args:
        trace (list): ``Tokens.trace`` of a forward pass.
        batch_size (int): Images of that pass.
        hw (tuple[int, int]): Height and width of the grid of patches.
        num_prefix (int): Tokens before the patches. Defaults to 1, CLS.

    Returns:
        list[Tensor]: A map (B, h, w) a reduction, int64: the position of the
        token in the sequence that the reduction leaves, the first of equal
        ones; -1 where the patch is dropped.
    """
    weights = stage_weights(trace, batch_size, hw[0] * hw[1], num_prefix)
    return [assigned(w).unflatten(1, hw) for w in weights]


def assigned(weights: Tensor) -> Tensor:
    """The token of largest weight for each patch, (B, N, P) to (B, P)."""
    # argmax takes any of equal ones
    most = weights.amax(dim=1, keepdim=True)
    token = (weights == most).to(torch.uint8).argmax(dim=1)
    return token.masked_fill(most[:, 0] == 0, -1)


def veil(image: np.ndarray, survivors: Tensor) -> np.ndarray:
    """Fade the patches of an image that have no token of their own.

    Args:
        image (np.ndarray): RGB image (H, W, 3), uint8.
        survivors (Tensor): One map (h, w) of :func:`survivor_maps`.

    Returns:
        np.ndarray: Image of the same size, uint8.
    """
    kept = enlarge(survivors > OWN, image.shape[:2])[..., None]
    return (kept * image + (1 - kept) * fade(image)).astype(np.uint8)


def fade(image: np.ndarray) -> np.ndarray:
    """An RGB image (H, W, 3) as it looks where patches are dropped."""
    return 0.12 * image + 0.88 * GREY


def enlarge(one: Tensor, shape: tuple) -> np.ndarray:
    """A map (h, w) or (h, w, C) of patches as one of pixels, float."""
    rows, columns = patch_of_pixels(one.shape, shape)
    return one.double().cpu().numpy()[rows[:, None], columns]


def patch_of_pixels(hw: tuple, shape: tuple) -> list[np.ndarray]:
    """For each row and each column of pixels that of the patch there."""
    return [
        np.arange(pixels) * patches // pixels
        for patches, pixels in zip(hw[:2], shape[:2], strict=True)
    ]


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
        share = 100 * (survivors > OWN).float().mean().item()
        axes[0, column].set_title(f'{stage}\n{share:.0f} % kept', fontsize=9)
    axes[0, 0].set_title('image\nall patches', fontsize=9)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    figure.savefig(out, dpi=110)
