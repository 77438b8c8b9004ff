# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of what is left of images stage by stage, for any reducer."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from mmclca.datasets.batches import View
from mmclca.models import reduces

from .cached_tokens import Cached, cached_by_stage
from .legend import add_heat_bar, add_legend
from .painting import FUSED, KEPT, MERGED, is_mixed, kinds, own_tokens, paint
from .patch_maps import assigned, stage_weights
from .picture_grid import Row, picture_grid
from .recording import grid_of


@dataclass
class Reduced:
    """An image, and what was made of its patches.

    Args:
        title (str): What to write beside the image.
        image (np.ndarray): RGB image as the model saw it, (H, W, 3), uint8.
        hw (tuple[int, int]): Height and width of the grid of patches.
        stages (list[Tensor]): The patches in each token, (N, P), a stage.
        cached (list[Cached]): The cached tokens of each stage, to be noted
            above it. Defaults to none.
    """

    title: str
    image: np.ndarray
    hw: tuple[int, int]
    stages: list[Tensor]
    cached: list[Cached] = field(default_factory=list)


def check_reduces(backbone) -> None:
    """Refuse a backbone of whose stages there is nothing to draw.

    Args:
        backbone (BaseBackbone): Any backbone.

    Raises:
        ValueError: If it has no stage that reduces.
    """
    if not reduces(backbone):
        raise ValueError(
            f'there are no stages to draw: a {type(backbone).__name__} that '
            "reduces nothing; give backbone=dict(type='mmclca."
            "TokenReductionViT', reducer=..., reduce_at=...), or ask for no "
            'pictures (--pictures, TokenVisualizationHook)'
        )


def stage_titles(backbone) -> list[str]:
    """What to write above the pictures of a backbone's stages."""
    return [f'after layer {layer}' for layer in backbone.reduce_at]


@torch.inference_mode()
def reduced(backbone, views: Sequence[View]) -> list[Reduced]:
    """What a model makes of the patches of some images.

    Args:
        backbone (Reducible): The model.
        views (Sequence[View]): The images.
    """
    found = []
    for view in views:  # one at a time, so that none is padded
        _, tokens = backbone.forward_tokens(view.batch)
        stages = [stage[0] for stage in stage_weights(tokens)]
        cached = [stage[0] for stage in cached_by_stage(tokens)]
        hw = grid_of(backbone, view.batch)
        found.append(Reduced(view.title, view.image, hw, stages, cached))
    return found


def draw_reductions(
    images: Sequence[Reduced],
    out: str,
    stages: Sequence[str],
    kept_only: bool = False,
) -> None:
    """Draw what is left of some images stage by stage, one row an image.

    Args:
        images (Sequence[Reduced]): The images.
        out (str): Picture to write; its ending gives the format.
        stages (Sequence[str]): What to write above each stage.
        kept_only (bool): Whether to show the patches with a token of their
            own alone, and above each stage the share of them in all images.
            Defaults to False: what became of every patch, and how many
            tokens are left in each image.
    """
    if kept_only:
        _kept_figure(images, stages).savefig(out, dpi=110)
        return
    figure = reductions_figure(images, stages)
    figure.savefig(out, dpi=100, bbox_inches='tight', pad_inches=0.06)


def reductions_figure(
    images: Sequence[Reduced], stages: Sequence[str]
) -> Figure:
    """The figure of :func:`draw_reductions`."""
    rows = [_row(one) for one in images]
    named = zip(stages, rows[0].titles[1:], strict=True)
    rows[0].titles[1:] = [f'{stage}\n{title}' for stage, title in named]
    figure, axes = picture_grid(rows, row_height=2.5, margin=0.6)
    _explain(figure, axes, images)
    return figure


def _row(one: Reduced) -> Row:
    pictures = [paint(one.image, stage, one.hw) for stage in one.stages]
    notes = [cached.note() for cached in one.cached] or [''] * len(pictures)
    headings = map(_heading, one.stages)
    titles = [a + b for a, b in zip(headings, notes, strict=True)]
    first = f'{one.hw[0]} x {one.hw[1]} patches'
    return Row(one.title, [one.image, *pictures], [first, *titles])


def _kept_figure(images: Sequence[Reduced], stages: Sequence[str]) -> Figure:
    kept = [[own_tokens(stage) for stage in one.stages] for one in images]
    rows, untitled = [], [''] * (1 + len(stages))
    for one, weights in zip(images, kept, strict=True):
        pictures = [paint(one.image, stage, one.hw) for stage in weights]
        rows.append(Row(one.title, [one.image, *pictures], untitled))
    rows[0].titles = ['image\nall patches']
    for stage, weights in zip(stages, zip(*kept, strict=True), strict=True):
        share = torch.cat([w.sum(dim=0) > 0 for w in weights]).float().mean()
        rows[0].titles.append(f'{stage}\n{100 * share:.0f} % kept')
    return picture_grid(rows, row_height=2.15, margin=0.3)[0]


def _heading(weights: Tensor) -> str:
    tokens = f'{len(weights)} token{"s" * (len(weights) != 1)}'
    if not is_mixed(weights):
        return f'{tokens}: {_contents(weights.cpu())}'
    most = weights.amax(dim=0)
    return f'{tokens}\nweights {most.min():.3g} to {most.max():.3g}'


def _contents(weights: Tensor) -> str:
    """How many tokens are of patches kept, merged and fused."""
    kind, token = kinds(weights), assigned(weights[None])[0]
    said = []
    for one, word in ((KEPT, 'kept'), (MERGED, 'merged'), (FUSED, 'fused')):
        number = token[kind == one].unique().numel()
        if number or one == KEPT:
            said.append(f'{number} {word}')
    return ', '.join(said)


def patches_left(weights: Tensor) -> str:
    """Say how many patches some tokens have left.

    Args:
        weights (Tensor): Patches in each token, (N, P).

    Returns:
        str: Nothing where each patch has a token of its own.
    """
    weights = weights.cpu()
    kind, number = kinds(weights), weights.size(1)
    if is_mixed(weights) or (kind == MERGED).any():
        tokens = int((weights > 0).any(dim=1).sum())
        return f'{number} patches in {tokens} token{"s" * (tokens != 1)}'
    left = int((kind == KEPT).sum())
    return f'{left} of {number} patches left' if left < number else ''


def _explain(figure: Figure, axes, images: Sequence[Reduced]) -> None:
    """Legends of the looks that occur."""
    stages = [weights.cpu() for one in images for weights in one.stages]
    plain = [weights for weights in stages if not is_mixed(weights)]
    if len(plain) < len(stages):
        label = 'largest weight of a patch in a token'
        add_heat_bar(figure, axes, label, ('least', 'most'))
    found = [kinds(weights).unique() for weights in plain]
    add_legend(figure, torch.cat(found).tolist() if found else ())
