# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import warnings
from pathlib import Path

from .costs import draw_costs
from .gradients import draw_gradients
from .methods import draw_methods
from .style import NothingToDrawError, save

FIGURES = dict(
    accuracy_gmacs=draw_costs, methods=draw_methods, gradients=draw_gradients
)


def write_figures(results: list[dict], folder: str | Path) -> list[Path]:
    """Write the paper's figures of a sweep as PDF and PNG.

    A figure for which the results lack something is left out with a warning
    that says what.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.result.read_results`.
        folder (str | Path): Where to, made if need be.

    Returns:
        list[Path]: ``accuracy_gmacs`` (Fig. 1), ``methods`` (Fig. 3) and
        ``gradients`` (Fig. 4); further pages end in ``-2``, ``-3``, ...
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, draw in FIGURES.items():
        try:
            figures = draw(results)
        except NothingToDrawError as error:
            warnings.warn(
                f'no figure {name}, the results lack: {error}', stacklevel=2
            )
            continue
        for number, figure in enumerate(figures, start=1):
            page = name if number == 1 else f'{name}-{number}'
            paths += save(figure, folder / page)
    return paths
