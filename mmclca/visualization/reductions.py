# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of what is left of images stage by stage, for any reducer."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from .cached_tokens import Cached, cached_by_stage
from .inputs import View
from .legend import add_heat_bar, add_legend
from .painting import FUSED, KEPT, MERGED, is_mixed, kinds, paint
from .recording import grid_of
from .survivors import assigned, stage_weights


@torch.inference_mode()
def weights_by_stage(backbone, images: Tensor) -> list[Tensor]:
    """What the tokens after each stage stand for.

    Args:
        backbone (Reducible): The model.
        images (Tensor): Preprocessed images, (B, 3, H, W).

    Returns:
        list[Tensor]: Weights (B, N, P) of the patches in each token, one a
        stage; before what the cache puts back.
    """
    _, tokens = backbone.forward_tokens(images)
    return stage_weights(
        tokens.trace, len(images), tokens.num_patches, tokens.num_prefix
    )


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


@torch.inference_mode()
def reduced(backbone, views: Sequence[View]) -> list[Reduced]:
    """What a model makes of the patches of some images.

    Args:
        backbone (Reducible): The model.
        views (Sequence[View]): The images.
    """
    return [_reduced(backbone, one) for one in views]


def _reduced(backbone, view: View) -> Reduced:
    # one at a time, so that none is padded
    _, tokens = backbone.forward_tokens(view.batch)
    numbers = 1, tokens.num_patches, tokens.num_prefix
    weights = stage_weights(tokens.trace, *numbers)
    cached = cached_by_stage(tokens.trace, *numbers)
    return Reduced(
        view.title,
        view.image,
        grid_of(backbone, view.batch),
        [stage[0] for stage in weights],
        [stage[0] for stage in cached],
    )


def draw_reductions(
    images: Sequence[Reduced], out: str, stages: Sequence[str]
) -> None:
    """Draw what is left of some images stage by stage, one row an image.

    Args:
        images (Sequence[Reduced]): The images.
        out (str): Picture to write; its ending gives the format.
        stages (Sequence[str]): What to write above each stage.
    """
    figure = reductions_figure(images, stages)
    figure.savefig(out, dpi=100, bbox_inches='tight', pad_inches=0.06)


def reductions_figure(
    images: Sequence[Reduced], stages: Sequence[str]
) -> Figure:
    """The figure of :func:`draw_reductions`."""
    columns = 1 + len(stages)
    figure = Figure(
        figsize=(2.1 * columns, 2.5 * len(images) + 0.6), layout='constrained'
    )
    axes = figure.subplots(len(images), columns, squeeze=False)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    for row, one in zip(axes, images, strict=True):
        _draw_row(row, one)
    for axis, stage in zip(axes[0, 1:], stages, strict=True):
        axis.set_title(f'{stage}\n{axis.get_title()}', fontsize=9)
    _explain(figure, axes, images)
    return figure


def to_array(figure: Figure) -> np.ndarray:
    """A figure as an RGB image (H, W, 3), uint8."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _draw_row(row, one: Reduced) -> None:
    row[0].imshow(one.image)
    row[0].set_ylabel(one.title, fontsize=9)
    row[0].set_title(f'{one.hw[0]} x {one.hw[1]} patches', fontsize=9)
    notes = [cached.note() for cached in one.cached] or [''] * len(one.stages)
    for axis, weights, note in zip(row[1:], one.stages, notes, strict=True):
        axis.imshow(paint(one.image, weights, one.hw))
        axis.set_title(_heading(weights) + note, fontsize=9)


def _heading(weights: Tensor) -> str:
    tokens = f'{len(weights)} token{"s" * (len(weights) != 1)}'
    if not is_mixed(weights):
        return f'{tokens}: {_contents(weights.cpu())}'
    most = weights.amax(dim=0)
    return f'{tokens}\nweights {most.min():.3g} to {most.max():.3g}'


def _contents(weights: Tensor) -> str:
    """How many tokens are of patches kept, merged and fused."""
    kind, token = kinds(weights), assigned(weights[None])[0]
    numbers = {
        word: token[kind == one].unique().numel()
        for one, word in ((KEPT, 'kept'), (MERGED, 'merged'), (FUSED, 'fused'))
    }
    said = [f'{n} {w}' for w, n in numbers.items() if n or w == 'kept']
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
        add_heat_bar(figure, axes.flat, label, ('least', 'most'))
    found = [kinds(weights).unique() for weights in plain]
    add_legend(figure, torch.cat(found).tolist() if found else ())
