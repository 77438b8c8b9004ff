# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections import defaultdict

import matplotlib.figure
import numpy as np

from .comparison import Result
from .speed_up_plot import MARKERS, by_baseline, name_of, title_of


def draw_by_batch(results: list[Result], out: str) -> None:
    """Draw speed-up against the batch, with the quartiles of the rounds.

    A picture a baseline. Above the dashed line a model is faster than it.

    Args:
        results (list[Result]): Of several batches.
        out (str): Picture to write.
    """
    groups = by_baseline(results)
    size = 7 * len(groups), 5
    figure = matplotlib.figure.Figure(size, layout='constrained')
    axes = figure.subplots(1, len(groups), squeeze=False)[0]
    for axis, group in zip(axes, groups, strict=True):
        _draw(axis, group)
    figure.savefig(out, dpi=130)


def _draw(axis, results: list[Result]) -> None:
    baseline = results[0].candidate
    by_model = defaultdict(list)
    for one in results:
        by_model[one.candidate].append(one)
    del by_model[baseline]
    for i, own in enumerate(by_model.values()):
        _draw_model(axis, own, i)
    name = title_of(baseline)
    axis.axhline(1, color='0.5', linestyle='--', zorder=0, label=name)
    axis.set_title(f'{baseline.size.name}, {baseline.size.pixels} px')
    axis.set_ylabel(f'speed / speed of {name}')
    batches = sorted({one.batch for one in results})
    axis.set(xlabel='images in a batch', xscale='log')
    axis.minorticks_off()
    axis.set_xticks(batches, batches)
    axis.grid(alpha=0.25)
    axis.spines[['top', 'right']].set_visible(False)
    axis.legend(fontsize=8, frameon=False)


def _draw_model(axis, own: list[Result], i: int) -> None:
    low, middle, high = np.transpose([one.speed_up for one in own])
    beside = [1.015**i * one.batch for one in own]
    model = own[0].candidate
    rate = model.label.removeprefix(model.method)
    axis.errorbar(
        beside,
        middle,
        (middle - low, high - middle),
        marker=MARKERS[i % 10],
        elinewidth=0.7,
        label=name_of(own[0]) + rate,
    )
