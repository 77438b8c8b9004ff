# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How time, memory and multiply-accumulates grow with the image."""

from collections import defaultdict
from collections.abc import Sequence

import matplotlib.figure
import numpy as np
from matplotlib.ticker import FormatStrFormatter, LogLocator

from mmclca.evaluation.cost import Cost

from .candidates import Size


def exponent(pixels: Sequence[float], values: Sequence[float]) -> float:
    """p of the power law, values ~ pixels ** p, that fits best.

    Least squares of the logarithms.

    Args:
        pixels (Sequence[float]): Pixels of an image, of two sizes at least.
        values (Sequence[float]): What grows with them.
    """
    return float(np.polyfit(np.log(pixels), np.log(values), 1)[0])


def attention_share(cost: Cost, size: Size) -> float:
    """Share of the products of attention (queries with keys, weights with
    values) in the multiply-accumulates."""
    products = sum(2 * n * n * size.embed_dims for n in cost.attended)
    return products / cost.flops


def by_model(records: list[dict]) -> dict[str, list[dict]]:
    """The records of each model, which their ``label`` names."""
    found = defaultdict(list)
    for record in records:
        found[record['label']].append(record)
    return found


def exponents(records: list[dict], keys: Sequence[str]) -> dict[str, dict]:
    """Exponents of each model's numbers over the pixels of an image.

    Of models with records of two sizes at least.

    Args:
        records (list[dict]): With ``label``, ``pixels`` and the keys.
        keys (Sequence[str]): Of the numbers.

    Returns:
        dict[str, dict[str, float]]: By label, then by key.
    """
    found = {}
    for label, own in by_model(records).items():
        if len(own) > 1:
            pixels = [int(record['pixels']) ** 2 for record in own]
            values = {key: [record[key] for record in own] for key in keys}
            found[label] = {k: exponent(pixels, v) for k, v in values.items()}
    return found


def draw_growth(
    records: list[dict], fitted: dict[str, dict], titles: dict, out: str
) -> None:
    """Draw numbers against the side of an image, both logarithmic.

    Args:
        records (list[dict]): With ``label``, ``pixels`` and the keys.
        fitted (dict[str, dict]): Of :func:`exponents`.
        titles (dict[str, str]): Title of the picture of each key.
        out (str): Picture to write.
    """
    size = 4.2 * len(titles), 4.2
    figure = matplotlib.figure.Figure(size, layout='constrained')
    axes = figure.subplots(1, len(titles), squeeze=False)[0]
    by_label = by_model(records)
    for axis, (key, title) in zip(axes, titles.items(), strict=True):
        for label, powers in fitted.items():
            sides = [int(record['pixels']) for record in by_label[label]]
            values = [record[key] for record in by_label[label]]
            name = f'{label}: pixels$^{{{powers[key]:.2f}}}$'
            axis.plot(sides, values, marker='.', label=name)
        _style(axis, title, records)
    figure.savefig(out, dpi=130)


def _style(axis, title: str, records: list[dict]) -> None:
    sides = sorted({int(record['pixels']) for record in records})
    axis.set(title=title, xlabel='side of the image (px)')
    axis.set(xscale='log', yscale='log')
    axis.minorticks_off()
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(FormatStrFormatter('%g'))
    axis.set_xticks(sides, sides)
    axis.grid(alpha=0.25)
    axis.spines[['top', 'right']].set_visible(False)
    axis.legend(fontsize=8, frameon=False, loc='lower right')
