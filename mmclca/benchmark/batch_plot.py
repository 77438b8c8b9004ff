# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections import defaultdict

import matplotlib.figure

from .comparison import Result
from .speed_up_plot import MARKERS, by_baseline, title_of


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
    for i, (model, own) in enumerate(by_model.items()):
        _draw_model(
            axis, own, f'{model.name} {model.label}'.strip(), MARKERS[i % 10]
        )
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


def _draw_model(axis, own: list[Result], name: str, marker: str) -> None:
    low, middle, high = zip(*(one.speed_up for one in own), strict=True)
    batches = [one.batch for one in own]
    (drawn,) = axis.plot(batches, middle, marker=marker, label=name)
    axis.fill_between(batches, low, high, color=drawn.get_color(), alpha=0.15)
