# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from pathlib import Path

from ..missing import left_out_if_missing
from .costs import draw_costs
from .gradients import draw_gradients
from .methods import draw_methods
from .parts import draw_parts
from .style import save

FIGURES = dict(
    accuracy_gmacs=draw_costs,
    methods=draw_methods,
    gradients=draw_gradients,
    gradients_by_part=draw_parts,
)


def write_figures(results: list[dict], folder: str | Path) -> list[Path]:
    """Write the paper's figures of a sweep as PDF and PNG.

    A figure for which results are missing is left out with a warning that
    says which.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.results.read_results`.
        folder (str | Path): Where to, made if need be.

    Returns:
        list[Path]: ``accuracy_gmacs`` (Fig. 1), ``methods`` (Fig. 3) and
        ``gradients`` (Fig. 4), and ``gradients_by_part`` where runs had parts
        of their own; further pages end in ``-2``, ``-3``, ...
    """
    paths = []
    for name, draw in FIGURES.items():
        with left_out_if_missing(name):
            for number, figure in enumerate(draw(results), start=1):
                page = name if number == 1 else f'{name}-{number}'
                paths += save(figure, Path(folder) / page)
    return paths
