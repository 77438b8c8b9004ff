# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Paint the tokens after a stage over an image, for any reducer."""

import matplotlib
import numpy as np
import torch
from torch import Tensor

from mmclca.models.recording import assigned

GREY = 205
INK = np.array([25.0, 25.0, 25.0])
FUSED_BLUE = np.array([0.0, 114.0, 178.0])  # Okabe and Ito's; unlike any leaf
HEAT = 'inferno'
AVERAGE_SUM = 0.99  # weight sum of an average, with rounding
MIN_SPAN = 0.05  # weight range from dark to bright, relative to the largest

DROPPED, KEPT, MERGED, FUSED = range(4)


def is_mixed(weights: Tensor) -> bool:
    """Return whether a patch contributes to several tokens; weights (N, P)."""
    return bool(((weights > 0).sum(dim=0) > 1).any())


def kinds(weights: Tensor) -> Tensor:
    """Classify patches that contribute to at most one token; weights (N, P).

    Returns int64 (P,): ``DROPPED``, ``KEPT`` (own token), ``MERGED`` (average
    of several patches) or ``FUSED`` (sum with small weights, as in EViT).
    """
    token = assigned(weights[None])[0]
    shared = (weights > 0).sum(dim=1)[token] > 1
    little = weights.sum(dim=1)[token] < AVERAGE_SUM
    color = (
        KEPT + (MERGED - KEPT) * shared + (FUSED - MERGED) * shared * little
    )
    return torch.where(token >= 0, color, DROPPED)


def paint(image: np.ndarray, weights: Tensor, hw: tuple[int, int]):
    """Draw the tokens after a stage over an RGB image (H, W, 3), uint8.

    Patches with their own token are unchanged. Merged patches get their mean
    color and a border, fused patches turn blue, dropped patches fade. Averages
    with weights that sum to less than 1 fade partly. If patches contribute to
    several tokens, the color shows their largest weight, from dark (smallest
    in the image) to bright (largest), or a uniform middle color if the weights
    hardly differ.
    """
    weights = weights.cpu()
    draw = paint_mixed if is_mixed(weights) else paint_groups
    return draw(image, weights, hw).round().astype(np.uint8)


def paint_mixed(image, weights: Tensor, hw: tuple[int, int]) -> np.ndarray:
    """Paint the largest weight of each patch; see :func:`paint`."""
    largest = weights.amax(dim=0)
    low, high = largest.min(), largest.max()
    span = torch.maximum(high - low, MIN_SPAN * high)
    largest = 0.5 + (largest - (low + high) / 2) / span
    return paint_heat(image, largest.unflatten(0, hw))


def paint_heat(image: np.ndarray, heat: Tensor) -> np.ndarray:
    """Paint a map (h, w), 0 to 1, over an RGB image (H, W, 3), float."""
    colors = 255 * matplotlib.colormaps[HEAT](heat.numpy())[..., :3]
    drawn = enlarge(torch.from_numpy(colors), image.shape)
    return 0.25 * image.mean(axis=2, keepdims=True) + 0.75 * drawn


def paint_signed(values: np.ndarray) -> np.ndarray:
    """Paint a map: red above zero, blue below, scaled to the largest value.

    NaN is white.
    """
    maximum = np.nanmax(np.abs(values))
    colors = matplotlib.colormaps['RdBu_r'].with_extremes(bad='white')
    share = np.ma.masked_invalid(0.5 + values / (2 * maximum))
    return 255 * colors(share)[..., :3]


def paint_map(image: np.ndarray, weights: Tensor) -> np.ndarray:
    """Paint a non-negative map (h, w) over an image; its maximum is bright."""
    share = weights / weights.max().clamp(min=1e-12)
    return paint_heat(image, share.cpu()).round().astype(np.uint8)


def paint_groups(image, weights: Tensor, hw: tuple[int, int]) -> np.ndarray:
    """Paint kept, merged, fused and dropped patches; see :func:`paint`."""
    shape = image.shape[:2]
    token = assigned(weights[None])[0]
    clear = weights.sum(dim=1)[token].clamp(max=1)
    colors = _mean_colors(image, token, weights, hw)
    patch_kinds, clear_pixels, token_pixels = (
        enlarge(values.unflatten(0, hw), shape)[..., None]
        for values in (kinds(weights), clear, token)
    )
    faded = fade(image)
    looks = {
        KEPT: clear_pixels * image + (1 - clear_pixels) * faded,
        MERGED: clear_pixels * colors + (1 - clear_pixels) * faded,
        FUSED: blend(image),
    }
    drawn = np.select(
        [patch_kinds == k for k in looks], [*looks.values()], faded
    )
    is_merged = patch_kinds[..., 0] == MERGED
    is_border = _find_borders(token_pixels[..., 0], is_merged)
    return np.where(is_border[..., None], INK, drawn)


def blend(image: np.ndarray) -> np.ndarray:
    """Paint an RGB image (H, W, 3) like fused patches."""
    # gray, because blue on pink paper would look violet
    brightness = image.mean(axis=2, keepdims=True)
    return 0.25 * brightness + 0.1 * GREY + 0.65 * FUSED_BLUE


def _mean_colors(image, token: Tensor, weights: Tensor, hw) -> np.ndarray:
    """Compute per pixel the mean color over the patches in its token."""
    rows, columns = patch_of_pixels(hw, image.shape)
    patch = (rows[:, None] * hw[1] + columns).ravel()
    count = np.bincount(patch, minlength=weights.size(1))
    sums = [np.bincount(patch, c.ravel()) for c in np.moveaxis(image, 2, 0)]
    means = torch.from_numpy(np.stack(sums, axis=1) / count[:, None])
    total = weights.sum(dim=1, keepdim=True).clamp(min=1e-12)
    colors = (weights / total).double() @ means
    return enlarge(colors[token].unflatten(0, hw), image.shape)


def _find_borders(token: np.ndarray, is_merged: np.ndarray) -> np.ndarray:
    """Find the border pixels of merged tokens, as bool (H, W).

    Their right or lower neighbor belongs to another token, and one of the
    three pixels is merged.
    """
    right = np.diff(token, axis=1, append=token[:, -1:]) != 0
    below = np.diff(token, axis=0, append=token[-1:]) != 0
    padded = np.pad(is_merged, ((0, 1), (0, 1)), mode='edge')
    near_merged = padded[:-1, :-1] | padded[:-1, 1:] | padded[1:, :-1]
    return (right | below) & near_merged


def fade(image: np.ndarray) -> np.ndarray:
    """Paint an RGB image (H, W, 3) like dropped patches."""
    return 0.12 * image + 0.88 * GREY


def enlarge(values: Tensor, shape: tuple) -> np.ndarray:
    """Enlarge a patch map (h, w) or (h, w, C) to pixels, float."""
    rows, columns = patch_of_pixels(values.shape, shape)
    return values.double().cpu().numpy()[rows[:, None], columns]


def patch_of_pixels(hw: tuple, shape: tuple) -> list[np.ndarray]:
    """Patch row and patch column of each pixel row and column."""
    return [
        np.arange(pixels) * patches // pixels
        for patches, pixels in zip(hw[:2], shape[:2], strict=True)
    ]
