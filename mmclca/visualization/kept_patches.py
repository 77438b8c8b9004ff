# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Patches that remain after each stage, for any reducer."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
import torch
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from torch import Tensor, nn

from mmclca.datasets.batches import View
from mmclca.errors import Error
from mmclca.languages import text
from mmclca.models import Reducible, recording, reduces

from .figures import Panel, add_heat_bar, picture_grid, save_figure
from .painting import (
    DROPPED,
    FUSED,
    HEAT,
    INK,
    KEPT,
    MERGED,
    blend,
    fade,
    is_mixed,
    kinds,
    paint,
)

GREY = np.full((1, 1, 3), 128.0)
NONE = '#00000000'
LEAF, SHADE = '#7fb069', '#4a7a37'  # examples of photo colors in the legend


@dataclass(frozen=True)
class Swatch:
    """Legend entry: a text with its colors.

    ``fill`` and ``edge`` are CSS colors, and matplotlib colors except for the
    gradient of mixed patches. ``hatch`` is a pattern of matplotlib, for
    patches with the texture of the photo.
    """

    label: str
    fill: str = NONE
    edge: str = NONE
    hatch: str = ''

    @property
    def background(self) -> str:
        """CSS value of the background property."""
        if not self.hatch:
            return self.fill
        return (
            f'repeating-linear-gradient(45deg, {self.fill} 0 2px, '
            f'{SHADE} 2px 4px)'
        )


def _hex(color: np.ndarray) -> str:
    red, green, blue = color.ravel()[:3] / 255
    return to_hex((red, green, blue))


SWATCHES = {
    KEPT: Swatch('kept, not merged: as photographed', LEAF, SHADE, '/////'),
    MERGED: Swatch('merged: mean color of a group', LEAF, _hex(INK)),
    FUSED: Swatch('fused with small weights', _hex(blend(GREY))),
    DROPPED: Swatch('dropped', _hex(fade(GREY))),
}
RAMP = ', '.join(map(to_hex, matplotlib.colormaps[HEAT]([0.0, 0.5, 1.0])))
MIXED = Swatch(
    'mixed: brighter patches have larger weights',
    f'linear-gradient(90deg, {RAMP})',
)


@dataclass(frozen=True)
class Stage:
    """Tokens of an image after one reduction.

    ``weights`` (N, P) are the patch weights in each token, ``picture`` is the
    painted image. ``cached`` counts the remaining and the restored cached
    tokens, None without a cache.
    """

    title: str
    weights: Tensor
    picture: np.ndarray
    cached: tuple[int, int] | None = None

    @property
    def mixed(self) -> bool:
        """Return whether a patch contributes to several tokens."""
        return is_mixed(self.weights)

    @property
    def kept(self) -> float | None:
        """Return the share of patches with their own token; None if mixed."""
        if self.mixed:
            return None
        return (kinds(self.weights) == KEPT).double().mean().item()

    @property
    def kept_as(self) -> str:
        """Describe the patches counted by ``kept``."""
        counts = kinds(self.weights)
        if MERGED not in counts:
            return text('patches.kept')
        if DROPPED not in counts:
            return text('patches.not_merged')
        return text('patches.not_merged_or_dropped')

    @property
    def swatches(self) -> list[Swatch]:
        """Legend entries for the picture."""
        if self.mixed:
            return [MIXED]
        counts = kinds(self.weights)
        return [swatch for name, swatch in SWATCHES.items() if name in counts]

    @property
    def contents(self) -> str:
        """Describe the token counts by kind."""
        left = f'{_tokens(len(self.weights))}{self._parts()}'
        if self.cached is None:
            return left
        cached, restored = self.cached
        return f'{left}\n{cached} cached, {restored} restored'

    def _parts(self) -> str:
        largest = self.weights.amax(dim=0)
        if self.mixed:
            return f'\nweights {largest.min():.3g} to {largest.max():.3g}'
        patch_kinds = kinds(self.weights)
        (token,) = recording.assigned(self.weights[None])
        counts = []
        for word, k in dict(kept=KEPT, merged=MERGED, fused=FUSED).items():
            number = token[patch_kinds == k].unique().numel()
            if number or k == KEPT:
                counts.append(f'{number} {word}')
        return f'\n{", ".join(counts)}'


@dataclass(frozen=True)
class KeptPatches:
    """Image as the model input, with its tokens after each stage.

    Args:
        title (str): Text next to the image.
        image (np.ndarray): RGB image (H, W, 3), uint8.
        hw (tuple[int, int]): Height and width of the patch grid.
        stages (list[Stage]): The stages.
    """

    title: str
    image: np.ndarray
    hw: tuple[int, int]
    stages: list[Stage]

    @property
    def panels(self) -> list[Panel]:
        """Panels of the image and of each stage."""
        first = Panel(self.image, f'{self.hw[0]} x {self.hw[1]} patches')
        return [first, *(Panel(x.picture, x.contents) for x in self.stages)]


def check_reduces(backbone: nn.Module) -> None:
    """Refuse a backbone without token reduction.

    Args:
        backbone (nn.Module): The backbone.

    Raises:
        Error: If it does not reduce tokens.
    """
    if not reduces(backbone):
        raise Error(
            f'{type(backbone).__name__} reduces no tokens, so it has no '
            'stages to draw: set reducer and reduce_at'
        )


@torch.inference_mode()
def find_kept_patches(
    model: nn.Module, views: Sequence[View]
) -> list[KeptPatches]:
    """Compute the tokens after each stage.

    Args:
        model (nn.Module): A classifier with a :class:`Reducible` backbone.
        views (Sequence[View]): The images. The picture has the size of the
            image, not of its batch.
    """
    backbone: Reducible = model.backbone
    # one by one, to avoid padding
    return [_find_in_view(backbone, view) for view in views]


def _find_in_view(backbone: Reducible, view: View) -> KeptPatches:
    reduce_at: Sequence[int] = backbone.reduce_at
    _, tokens = backbone.forward_tokens(view.batch)
    hw = recording.grid_of(backbone, view.batch)
    weights = [stage[0].cpu() for stage in recording.stage_weights(tokens)]
    cached = [stage[0] for stage in recording.cached_by_stage(tokens)]
    cached = cached or [None] * len(weights)
    parts = zip(reduce_at, weights, cached, strict=True)
    stages = [
        Stage(
            text('patches.stage', layer=layer),
            of,
            paint(view.image, of, hw),
            put_back,
        )
        for layer, of, put_back in parts
    ]
    return KeptPatches(view.title, view.image, hw, stages)


def legend(images: Sequence[KeptPatches]) -> list[Swatch]:
    """List the legend entries for pictures.

    Args:
        images (Sequence[KeptPatches]): The images.
    """
    stages = [stage for image in images for stage in image.stages]
    used = {swatch for stage in stages for swatch in stage.swatches}
    return [x for x in (*SWATCHES.values(), MIXED) if x in used]


def patches_left(weights: Tensor) -> str:
    """Describe how many patches remain in tokens with weights (N, P).

    Empty if each patch has its own token.
    """
    weights = weights.cpu()
    patch_kinds, number = kinds(weights), weights.size(1)
    if is_mixed(weights) or (patch_kinds == MERGED).any():
        tokens = int((weights > 0).any(dim=1).sum())
        return f'{number} patches in {_tokens(tokens)}'
    left = int((patch_kinds == KEPT).sum())
    return f'{left} of {number} patches kept' if left < number else ''


def _tokens(number: int) -> str:
    return f'{number} token{"s" * (number != 1)}'


def draw_kept_patches(images: Sequence[KeptPatches], out: str) -> str:
    """Draw the remaining patches after each stage, one row per image.

    Args:
        images (Sequence[KeptPatches]): Result of :func:`find_kept_patches`.
        out (str): The picture; its suffix selects the format.

    Returns:
        str: ``out``.
    """
    return save_figure(plot_kept_patches(images), out)


def plot_kept_patches(images: Sequence[KeptPatches]) -> Figure:
    """Make the figure of :func:`draw_kept_patches`.

    Args:
        images (Sequence[KeptPatches]): See :func:`draw_kept_patches`.
    """
    rows = [image.panels for image in images]
    for cell, stage in zip(rows[0][1:], images[0].stages, strict=True):
        cell.title = f'{stage.title}\n{cell.title}'
    names = [x.title for x in images]
    figure, axes = picture_grid(rows, names, margin=0.6)
    swatches = legend(images)
    if MIXED in swatches:
        label = 'largest token weight per patch'
        add_heat_bar(figure, axes, label, ('least', 'most'))
    patches = [
        Patch(
            facecolor=swatch.fill,
            edgecolor=swatch.edge,
            hatch=swatch.hatch,
            label=swatch.label,
        )
        for swatch in swatches
        if swatch is not MIXED
    ]
    if patches:
        square = dict(handlelength=1.2, handleheight=1.2, frameon=False)
        position = dict(loc='outside lower center', ncols=len(patches))
        figure.legend(handles=patches, fontsize=9, **position, **square)
    return figure
