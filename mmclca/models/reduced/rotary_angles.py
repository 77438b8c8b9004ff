# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Coordinates and frequencies in rotary position embeddings.

An angle is the sum of two coordinates of the patch, each times a frequency.
Shapes as in ``reduction/rotary.py``; F = D / 2 pairs of channels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from math import log, pi
from typing import Any

import torch
from mmpretrain.models.utils import to_2tuple
from timm.layers import pos_embed_sincos as sincos
from torch import Tensor, nn


@dataclass
class Angles:
    """Coordinates and frequencies in a model.

    Args:
        places (Tensor): Two coordinates per patch, (P, 2).
        frequencies (Tensor): Angles per channel and unit in both
            coordinates, (L, h, 2, D).
    """

    places: Tensor
    frequencies: Tensor


def arrange(pairs: Tensor, half: bool) -> Tensor:
    """Repeat a number per pair (..., F) for both channels, (..., D)."""
    if half:
        return torch.cat((pairs, pairs), dim=-1)
    return pairs.repeat_interleave(2, dim=-1)


def split_axes(bands: Tensor) -> Tensor:
    """Give each coordinate its pairs: (F / 2,) to (2, F)."""
    return torch.block_diag(bands, bands)


def grid(rows: Tensor, columns: Tensor, indexing: str) -> Tensor:
    """Return all patch coordinates, row by row, (P, 2).

    Args:
        rows (Tensor): Row coordinates, (height,).
        columns (Tensor): Column coordinates, (width,).
        indexing (str): Order of both, 'ij': rows first; 'xy': columns first.
    """
    places = torch.cartesian_prod(rows, columns)
    return places if indexing == 'ij' else places.flip(-1)


def count_steps(rope: Any, hw: tuple[int, int]) -> Tensor:
    """Return patch coordinates counted from 0, (P, 2)."""
    options = vars(rope)
    device = next(chain(rope.buffers(), rope.parameters())).device
    reference = options.get('ref_feat_shape') or hw
    rows, columns = (
        (
            torch.arange(size, device=device).float()
            + options.get('grid_offset', 0.0)
        )
        / size
        * scale
        for size, scale in zip(hw, reference, strict=True)
    )
    return grid(rows, columns, options.get('grid_indexing', 'ij'))


def centers(
    hw: tuple[int, int],
    device: torch.device,
    sides: tuple[float, float],
    offset: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Return row and column centers, -1 and 1 at the image's edge.

    Args:
        hw (tuple[int, int]): Height and width of the patch grid.
        device (torch.device): Their device.
        sides (tuple[float, float]): Patches that span 2 units, per side.
        offset (float): Added to the coordinates in patches. Defaults to 0.
    """
    rows, columns = (
        (torch.arange(size, device=device) + 0.5 + offset) / side * 2 - 1
        for size, side in zip(hw, sides, strict=True)
    )
    return rows, columns


def augment(
    places: Tensor,
    shift: float | None,
    jitter: float | None,
    rescale: float | None,
) -> Tensor:
    """Move and scale all coordinates (P, 2) at random, as in DINOv3.

    Args:
        places (Tensor): The coordinates.
        shift (float, optional): Largest shift of an axis, in their unit.
        jitter (float, optional): Largest factor of an axis, at least 1.
        rescale (float, optional): Largest factor of both axes, at least 1.
    """

    def draw(size: int, largest: float) -> Tensor:
        return places.new_empty(size).uniform_(-largest, largest)

    if shift is not None:
        places = places + draw(2, shift)
    if jitter is not None:
        places = places * draw(2, log(jitter)).exp()
    if rescale is not None:
        places = places * draw(1, log(rescale)).exp()
    return places


def augmented(rope: nn.Module, places: Tensor) -> Tensor:
    """Augment coordinates (P, 2) in training, if timm's embedding does."""
    if not rope.training:
        return places
    options = vars(rope)
    names = 'shift_coords', 'jitter_coords', 'rescale_coords'
    shift, jitter, rescale = (options.get(name) for name in names)
    return augment(places, shift, jitter, rescale)


def axial_angles(rope: Any, hw: tuple[int, int]) -> Angles:
    """Return the angles for timm's ``RotaryEmbeddingCat``."""
    places = augmented(rope, count_steps(rope, hw))
    exponents = torch.arange(rope.dim // 4, device=places.device)
    bands = rope.temperature ** -(exponents.float() / (rope.dim // 4))
    half = vars(rope).get('rotate_half', False)  # after timm 1.0.20
    return Angles(places, arrange(split_axes(bands), half)[None, None])


def dinov3_angles(rope: Any, hw: tuple[int, int]) -> Angles:
    """Return the angles for timm's ``RotaryEmbeddingDinoV3``."""
    height, width = hw
    denominators = dict(
        separate=(height, width),
        min=(min(hw), min(hw)),
        max=(max(hw), max(hw)),
    )
    rows, columns = centers(
        hw,
        rope.periods.device,
        denominators[rope.normalize_coords],
        rope.grid_offset,
    )
    places = grid(rows, columns, rope.grid_indexing)
    bands = split_axes(2 * pi / rope.periods.float())
    frequencies = arrange(bands, rope.rotate_half)[None, None]
    return Angles(augmented(rope, places), frequencies)


def multimodal_angles(rope: Any, hw: tuple[int, int]) -> Angles:
    """Return the angles for timm's ``RotaryEmbeddingMRope``."""
    places = augmented(rope, count_steps(rope, hw))
    axes = torch.tensor([[1], [2]], device=places.device)
    pairs = rope.inv_freq.float() * (rope.axis == axes)
    return Angles(places, arrange(pairs, half=True)[None, None])


def mixed_angles(rope: Any, hw: tuple[int, int]) -> Angles:
    """Return the angles for timm's ``RotaryEmbeddingMixed``, per layer."""
    places = augmented(rope, count_steps(rope, hw))
    pairs = rope.freqs.float().permute(1, 2, 0, 3)  # to (L, h, 2, F)
    return Angles(places, arrange(pairs, half=False))


def transformers_angles(rope: Any, images: Tensor) -> Angles:
    """Return the angles for the DINOv3 in Transformers.

    Args:
        rope (nn.Module): Its rotary position embedding.
        images (Tensor): Images (B, 3, H, W).
    """
    config = rope.config
    patch = to_2tuple(config.patch_size)
    height, width = images.size(2) // patch[0], images.size(3) // patch[1]
    rows, columns = centers(
        (height, width), images.device, sides=(height, width)
    )
    places = grid(rows, columns, 'ij')
    if rope.training:
        places = augment(
            places,
            config.pos_embed_shift,
            config.pos_embed_jitter,
            config.pos_embed_rescale,
        )
    bands = split_axes(2 * pi * rope.inv_freq.float())
    return Angles(places, arrange(bands, half=True)[None, None])


# supported rotary position embeddings in timm; an older timm lacks some
ANGLES: dict[type, Callable[[Any, tuple[int, int]], Angles]] = {
    getattr(sincos, name): function
    for name, function in dict(
        RotaryEmbeddingCat=axial_angles,
        RotaryEmbeddingDinoV3=dinov3_angles,
        RotaryEmbeddingMRope=multimodal_angles,
        RotaryEmbeddingMixed=mixed_angles,
    ).items()
    if hasattr(sincos, name)
}


def find_angles(rope: nn.Module, hw: tuple[int, int]) -> Angles:
    """Return the angles for a rotary position embedding in timm.

    Args:
        rope (nn.Module): An instance of a class in ``ANGLES``, or derived.
        hw (tuple[int, int]): Height and width of the patch grid.
    """
    bases = type(rope).__mro__
    return next(ANGLES[base] for base in bases if base in ANGLES)(rope, hw)
