# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of where models agree."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from mmclca.models.distillation.agreement import disagreement

from .cka import draw_matrix
from .figures import save


def check_classes(names: Sequence[list[str]]) -> None:
    """Refuse models of other classes, which are compared by labels.

    Args:
        names (Sequence[list[str]]): Classes of each; labels, where names are
            not known, are let through.

    Raises:
        ValueError: If some differ.
    """
    known = [one for one in names if one != [*map(str, range(len(one)))]]
    if any(of_one != known[0] for of_one in known):
        raise ValueError('the models have different class names or orders')


def draw_agreement(
    rows: dict[str, Tensor], cosines: dict[str, Tensor], out: str
) -> None:
    """Draw how often models decide otherwise, and how alike tokens are.

    Args:
        rows (dict[str, Tensor]): Of :func:`.decisions`, of all models.
        cosines (dict[str, Tensor]): Of :func:`.token_cosines`, by model; may
            be empty.
        out (str): Picture to write; its ending gives the format.
    """
    names, parts = list(rows), 1 + bool(cosines)
    size = parts * (3 + 0.55 * len(names)), 2.2 + 0.55 * len(names)
    figure = Figure(size, layout='constrained')
    first, *others = figure.subplots(1, parts, squeeze=False)[0]
    label = 'share of images with different predictions'
    draw_matrix(first, disagreement(rows.values()), label)
    ticks = range(len(names))
    first.set_yticks(ticks, names, fontsize=8)
    first.set_xticks(ticks, names, fontsize=8, rotation=90)
    for axis in others:
        for name, values in cosines.items():
            axis.plot(values.tolist(), marker='o', markersize=3, label=name)
        axis.set_xlabel('layers passed', fontsize=9)
        axis.set_ylabel('cosine similarity, CLS to distillation token')
        axis.legend(fontsize=8, frameon=False)
    save(figure, out)
