# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of what the tokens of each stage stand for, for any reducer."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import matplotlib.figure
import numpy as np
import torch
from torch import Tensor

from .survivors import assigned, enlarge, fade, patch_of_pixels, stage_weights

INK = np.array([25.0, 25.0, 25.0])
LEAST_SPAN = 0.05  # of weights from dark to bright, as a share of the largest


@torch.inference_mode()
def weights_by_stage(backbone, images: Tensor) -> list[Tensor]:
    """What the tokens after each stage stand for.

    Args:
        backbone (TokenReductionViT): The model.
        images (Tensor): Preprocessed images, (B, 3, H, W).

    Returns:
        list[Tensor]: Weights (B, N, P) of the patches in each token, one a
        stage; ahead of what the cache puts back.
    """
    _, tokens = backbone.forward_tokens(images)
    return stage_weights(tokens.trace, len(images), tokens.num_patches)


def is_mixed(weights: Tensor) -> bool:
    """Whether a patch goes into several tokens; weights (N, P)."""
    return bool(((weights > 0).sum(dim=0) > 1).any())


def paint(image: np.ndarray, weights: Tensor, hw: tuple[int, int]):
    """Draw on an image what the tokens stand for.

    A patch with a token of its own stays as it is, patches that share a token
    take their mean colour and get a border, a dropped patch fades. The less
    the weights of a token sum to, the more it fades. Where a patch goes into
    several tokens, the colour is the largest of its weights, from the least
    (dark) to the largest one of the image (bright), or all of a middle one
    where these hardly differ.

    Args:
        image (np.ndarray): RGB image (H, W, 3), uint8.
        weights (Tensor): Patches in each token, (N, P).
        hw (tuple[int, int]): Height and width of the grid of patches.

    Returns:
        np.ndarray: Image of the same size, uint8.
    """
    weights = weights.cpu()
    draw = paint_heat if is_mixed(weights) else paint_groups
    return draw(image, weights, hw).round().astype(np.uint8)


def paint_heat(image, weights: Tensor, hw: tuple[int, int]) -> np.ndarray:
    """The largest weight of each patch as a colour; see :func:`paint`."""
    most = weights.amax(dim=0)
    low, high = most.min(), most.max()
    span = torch.maximum(high - low, LEAST_SPAN * high)
    most = 0.5 + (most - (low + high) / 2) / span
    colours = matplotlib.colormaps['inferno'](most.numpy())[:, :3]
    heat = enlarge(
        torch.from_numpy(255 * colours).unflatten(0, hw), image.shape
    )
    return 0.25 * image.mean(axis=2, keepdims=True) + 0.75 * heat


def paint_groups(image, weights: Tensor, hw: tuple[int, int]) -> np.ndarray:
    """Patches clear, in one colour or faded; see :func:`paint`."""
    shape = image.shape[:2]
    token = assigned(weights[None])[0]
    shared = (weights > 0).sum(dim=1)[token] > 1
    clear = weights.sum(dim=1)[token].clamp(max=1) * (token >= 0)
    colours = _mean_colours(image, token, weights, hw)
    clear, shared, token = (
        enlarge(one.unflatten(0, hw), shape) for one in (clear, shared, token)
    )
    own = shared[..., None] * colours + (1 - shared[..., None]) * image
    drawn = clear[..., None] * own + (1 - clear[..., None]) * fade(image)
    # not of what attention fused, where little is left to see
    border = _edges(token) * _near(shared * (clear > 0.5))
    border = border[..., None]
    return border * INK + (1 - border) * drawn


def _mean_colours(image, token: Tensor, weights: Tensor, hw) -> np.ndarray:
    """For each pixel the mean colour of the patches of its token."""
    rows, columns = patch_of_pixels(hw, image.shape)
    patch = (rows[:, None] * hw[1] + columns).ravel()
    count = np.bincount(patch, minlength=weights.size(1))
    sums = [np.bincount(patch, c.ravel()) for c in np.moveaxis(image, 2, 0)]
    means = torch.from_numpy(np.stack(sums, axis=1) / count[:, None])
    total = weights.sum(dim=1, keepdim=True).clamp(min=1e-12)
    colours = (weights / total).double() @ means
    return enlarge(colours[token].unflatten(0, hw), image.shape)


def _edges(token: np.ndarray) -> np.ndarray:
    """1 at pixels whose right or lower neighbor is of another token."""
    right = np.diff(token, axis=1, append=token[:, -1:]) != 0
    below = np.diff(token, axis=0, append=token[-1:]) != 0
    return (right | below).astype(float)


def _near(amount: np.ndarray) -> np.ndarray:
    """The largest of a pixel and its right and lower neighbors."""
    padded = np.pad(amount, ((0, 1), (0, 1)), mode='edge')
    neighbors = (padded[:-1, :-1], padded[:-1, 1:], padded[1:, :-1])
    return np.maximum.reduce(neighbors)


@dataclass
class Reduced:
    """An image, and what was made of its patches.

    Args:
        title (str): What to write beside the image.
        image (np.ndarray): RGB image as the model saw it, (H, W, 3), uint8.
        hw (tuple[int, int]): Height and width of the grid of patches.
        stages (list[Tensor]): The patches in each token, (N, P), a stage.
    """

    title: str
    image: np.ndarray
    hw: tuple[int, int]
    stages: list[Tensor]


def draw_reductions(
    images: Sequence[Reduced], out: str, stages: Sequence[str]
) -> None:
    """Draw what is left of some images stage by stage, one row an image.

    Args:
        images (Sequence[Reduced]): The images.
        out (str): Picture to write; its ending gives the format.
        stages (Sequence[str]): What to write above each stage.
    """
    columns = 1 + len(stages)
    figure = matplotlib.figure.Figure(
        figsize=(2.1 * columns, 2.5 * len(images) + 0.3), layout='constrained'
    )
    axes = figure.subplots(len(images), columns, squeeze=False)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    for row, one in zip(axes, images, strict=True):
        row[0].imshow(one.image)
        row[0].set_ylabel(one.title, fontsize=9)
        row[0].set_title(f'{one.hw[0]} x {one.hw[1]} patches', fontsize=9)
        for axis, weights in zip(row[1:], one.stages, strict=True):
            axis.imshow(paint(one.image, weights, one.hw))
            axis.set_title(_heading(weights), fontsize=9)
    for axis, stage in zip(axes[0, 1:], stages, strict=True):
        axis.set_title(f'{stage}\n{axis.get_title()}', fontsize=9)
    figure.savefig(out, dpi=100, bbox_inches='tight', pad_inches=0.06)


def _heading(weights: Tensor) -> str:
    tokens = f'{len(weights)} token{"s" * (len(weights) != 1)}'
    if not is_mixed(weights):
        return tokens
    most = weights.amax(dim=0)
    return f'{tokens}\nweights {most.min():.3g} to {most.max():.3g}'
