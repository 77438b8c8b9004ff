# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the model keeps of a leaf."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image
from torch import Tensor

from mmclca.apis import TokenReductionInferencer
from mmclca.datasets.batches import View, view_of_input
from mmclca.models import reduces
from mmclca.visualization import Reduced, kinds, paint, reduced, stage_titles
from mmclca.visualization.legend import EDGES, FILLS, TITLES
from mmclca.visualization.painting import HEAT, KEPT, is_mixed

from .folder import Named
from .formats import about
from .thumbnails import Picture, embedded

LEAVES = 3
SIDE = 224  # pixels of the longer side of a picture


@dataclass(frozen=True)
class Swatch:
    """An entry of the legend.

    Args:
        text (str): What it means.
        fill (str): Colour of it in CSS.
        edge (str): Colour of its edge.
    """

    text: str
    fill: str
    edge: str


@dataclass(frozen=True)
class Kept:
    """Photographs, and what is left of them stage by stage.

    Args:
        rows (list[list[tuple[str, Picture]]]): For each photograph what to
            write below its pictures, and these.
        legend (list[Swatch]): Of the looks that occur.
    """

    rows: list[list[tuple[str, Picture]]]
    legend: list[Swatch]


def what_is_kept(model: Path, tested: Sequence[Named]) -> Kept | None:
    """Draw what a model keeps of some photographs that it names right.

    Args:
        model (Path): The checkpoint.
        tested (Sequence[Named]): Photographs.

    Returns:
        Kept: None where there is no checkpoint, the model keeps all of an
        image, or no photograph is there.
    """
    if not model.is_file():
        return None
    inferencer = TokenReductionInferencer(model, device='cpu')
    backbone = inferencer.model.backbone
    if not reduces(backbone):
        return None
    found = reduced(backbone, list(_views(inferencer, _chosen(tested))))
    stages = stage_titles(backbone)
    rows = [_row(one, stages) for one in found]
    return Kept(rows, _legend(found)) if found else None


def _views(
    inferencer: TokenReductionInferencer, chosen: Sequence[Named]
) -> Iterator[View]:
    for one in chosen:
        packed = inferencer.prepare(one.path)
        if not isinstance(packed, str):  # why it cannot be read
            args = inferencer.model, one.label, packed['inputs']
            yield view_of_input(*args)


def _chosen(tested: Sequence[Named]) -> list[Named]:
    """One of each of some classes far apart in their order."""
    first = {one.label: one for one in reversed(tested) if one.right}
    classes = sorted(first)
    places = np.linspace(0, len(classes) - 1, min(LEAVES, len(classes)))
    return [first[classes[round(place)]] for place in places]


def _row(one: Reduced, stages: Sequence[str]) -> list[tuple[str, Picture]]:
    row = [(one.title, _small(one.image, one.title))]
    for weights, stage in zip(one.stages, stages, strict=True):
        text = stage + _left(weights.cpu())
        picture = paint(one.image, weights, one.hw)
        row.append((text, _small(picture, f'{one.title}, {text}')))
    return row


def _left(weights: Tensor) -> str:
    """The share of squares that have a token of their own."""
    if is_mixed(weights):
        return ''
    share = (kinds(weights) == KEPT).float().mean().item()
    return f': {about(share)} kept'


def _small(array: np.ndarray, alt: str) -> Picture:
    image = Image.fromarray(array)
    image.thumbnail((SIDE, SIDE))
    return embedded(image, alt)


def _legend(found: Sequence[Reduced]) -> list[Swatch]:
    stages = [w.cpu() for w in chain.from_iterable(r.stages for r in found)]
    mixed = [is_mixed(weights) for weights in stages]
    plain = [w for w, is_so in zip(stages, mixed, strict=True) if not is_so]
    there = {kind for weights in plain for kind in kinds(weights).tolist()}
    swatches = [
        Swatch(text, _rgb(FILLS.get(kind)), _rgb(EDGES.get(kind)))
        for kind, text in TITLES.items()
        if kind in there
    ]
    if any(mixed):
        heat = 255 * matplotlib.colormaps[HEAT]([0.0, 0.5, 1.0])[:, :3]
        ramp = f'linear-gradient(90deg, {", ".join(map(_rgb, heat))})'
        text = 'mixed: the brighter a square, the more it counts'
        swatches.append(Swatch(text, ramp, 'transparent'))
    return swatches


def _rgb(colour: np.ndarray | None) -> str:
    if colour is None:
        return 'transparent'
    return 'rgb({:.0f} {:.0f} {:.0f})'.format(*colour)
