# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections import defaultdict

import matplotlib
import matplotlib.figure
import numpy as np

from .comparison import Result

MARKERS = 'osD^vP*X<>'
DASHED = dict(color='0.5', linestyle='--', zorder=0)


def draw_speed_up(results: list[Result], out: str) -> None:
    """Draw speed-up, with the quartiles of the rounds, a picture a baseline.

    Against the ratio of multiply-accumulates, a line a method through its
    keep rates: on the dashed line the clock sees all that they promise. Of
    several batches, against the batch, a line a model: above the dashed line
    it is faster than the baseline.
    """
    groups = defaultdict(list)
    for one in results:
        groups[(one.baseline or one).candidate].append(one)
    size = 7.5 * len(groups), 7
    figure = matplotlib.figure.Figure(size, layout='constrained')
    axes = figure.subplots(1, len(groups), squeeze=False)[0]
    for axis, (baseline, own) in zip(axes, groups.items(), strict=True):
        _draw(axis, own, baseline.name or "timm's plain ViT")
        axis.set_title(f'{baseline.size.name}, {baseline.size.pixels} px')
    figure.savefig(out, dpi=130)


def _draw(axis, results: list[Result], baseline: str) -> None:
    batches = sorted({one.batch for one in results})
    several = len(batches) > 1
    if several:
        axis.axhline(1, **DASHED)
        axis.set(xlabel='images in a batch', xscale='log')
        axis.minorticks_off()
        axis.set_xticks(batches, batches)
    else:
        axis.axline((1, 1), slope=1, **DASHED)
        axis.set_xlabel(f'GMACs of {baseline} / GMACs')
    lines = defaultdict(list)
    for one in results:
        place = one.batch if several else one.gmacs_ratio
        lines[_name(one, several)].append((place, *one.speed_up))
    for i, (name, points) in enumerate(lines.items()):
        places, low, middle, high = np.transpose(points)
        axis.errorbar(
            places,
            middle,
            (middle - low, high - middle),
            color=matplotlib.colormaps['tab20'](i % 20),
            marker=MARKERS[i % 10],
            linewidth=0.7,
            label=name,
        )
    axis.set_ylabel(f'speed / speed of {baseline}')
    axis.grid(alpha=0.25)
    axis.spines[['top', 'right']].set_visible(False)
    axis.legend(fontsize=7, frameon=False, loc='upper left')


def _name(result: Result, with_rate: bool) -> str:
    """A model as the legend calls it, with its keep rate or with any."""
    one = result.candidate
    words = [one.name, *one.label.split()]
    if one.variant.rates and not with_rate:
        words.remove(one.variant.rates)
    return ' '.join(words).strip()
