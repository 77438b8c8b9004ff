# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the model keeps of a leaf."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from mmclca.apis import TokenReductionInferencer
from mmclca.datasets.batches import View, view_of_input
from mmclca.models import reduces
from mmclca.visualization import legend, survivors
from mmclca.visualization.survivors import Stage, Survivors, Swatch

from .folder import Named
from .formats import about
from .thumbnails import Picture, embedded

LEAVES = 3
SIDE = 224  # pixels of the longer side of a picture


@dataclass(frozen=True)
class KeptPhotographs:
    """Photographs, and what is left of them stage by stage.

    Args:
        rows (list[list[tuple[str, Picture]]]): For each photograph what to
            write below its pictures, and these.
        legend (list[Swatch]): Of the swatches that occur.
    """

    rows: list[list[tuple[str, Picture]]]
    legend: list[Swatch]


def what_is_kept(
    model: Path, tested: Sequence[Named]
) -> KeptPhotographs | None:
    """Draw what a model keeps of some photographs that it names right.

    Args:
        model (Path): The checkpoint.
        tested (Sequence[Named]): Photographs.

    Returns:
        KeptPhotographs: None where there is no checkpoint, the model keeps
        all of an image, or no photograph is there.
    """
    if not model.is_file():
        return None
    inferencer = TokenReductionInferencer(model, device='cpu')
    if not reduces(inferencer.model.backbone):
        return None
    views = list(_views(inferencer, _chosen(tested)))
    found = survivors(inferencer.model, views)
    return (
        KeptPhotographs(list(map(_row, found)), legend(found))
        if found
        else None
    )


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


def _row(one: Survivors) -> list[tuple[str, Picture]]:
    stages = [(_text(stage), stage.picture) for stage in one.stages]
    return [
        (one.title, _small(one.image, one.title)),
        *((text, _small(p, f'{one.title}, {text}')) for text, p in stages),
    ]


def _text(stage: Stage) -> str:
    """The stage, and the share of squares that have a token of their own."""
    if stage.mixed:
        return stage.title
    return f'{stage.title}: {about(stage.kept)} kept'


def _small(array: np.ndarray, alt: str) -> Picture:
    image = Image.fromarray(array)
    image.thumbnail((SIDE, SIDE))
    return embedded(image, alt)
