# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Plots from the tables in docs/benchmarks."""

from functools import partial

from diagram import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, YELLOW
from results import plot

COLORS = BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW, '#999999'
MARKERS = 'osD^vP*X<>'
MODELS = 'timm', 'mmpretrain', 'none'  # without reduction
# growth with the image size: column, title
GROWTH = (
    ('seconds_per_image', 'time per image (s)'),
    ('features_mib', 'peak memory without weights (MiB)'),
    ('gmacs', 'GMACs per image'),
)
NAMES = {'timm': "timm's plain ViT", 'EViT 0.5': 'EViT, keep rate 0.5'}
NAMES['EViT 0.1 + CLCA'] = 'EViT, keep rate 0.1, CLCA'


def read(study, run):
    """Return all rows from a run."""
    import pandas as pd

    table = pd.read_csv(f'docs/benchmarks/{study}.csv')
    return table[table.run == run]


def speed_up(study, run, title):
    """Plot the measured speed-up against the GMACs ratio."""
    from matplotlib.lines import Line2D

    table = read(study, run)
    table = table[~table.method.isin(MODELS)]
    figure, axis = plot(7, 5)
    axis.axline((1, 1), slope=1, color=INK, ls='--', lw=1)
    handles = []
    for number, (method, own) in enumerate(table.groupby('method')):
        style = dict(color=COLORS[number % 7], marker=MARKERS[number], ls='')
        handles.append(Line2D([], [], label=method, **style))
        for with_clca, rows in own.groupby(own.clca != 'no'):
            face = style['color'] if with_clca else 'white'
            points = rows.gmacs_ratio, rows.speed_up
            axis.plot(*points, mfc=face, ms=6, **style)
    for mark, label in (('white', 'without CLCA'), (INK, 'with CLCA')):
        style = dict(marker='o', ls='', color=INK, mfc=mark)
        handles.append(Line2D([], [], label=label, **style))
    dashed = Line2D([], [], ls='--', lw=1, color=INK, label='ideal')
    axis.set(
        title=title,
        xlabel="GMACs of timm's plain ViT / GMACs",
        ylabel="speed / speed of timm's plain ViT",
    )
    figure.legend(
        handles=[*handles, dashed], loc='outside right center', frameon=False
    )
    return figure


def growth():
    """Plot time, memory and GMACs against the image size."""
    from matplotlib.ticker import NullLocator

    table = read('growth', 'growth_cpu')
    figure, axes = plot(10, 3.9, 3)
    for axis, (column, title) in zip(axes, GROWTH, strict=True):
        for (name, label), color in zip(NAMES.items(), COLORS, strict=False):
            own = table[table.label == name]
            axis.plot(own.pixels, own[column], 'o-', color=color, label=label)
        axis.set(title=title, xlabel='image size (px)')
        axis.set(xscale='log', yscale='log')
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xticks(own.pixels, own.pixels)
        axis.yaxis.set_major_formatter('{x:g}')
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc='outside lower center', ncols=3, frameon=False)
    return figure


PICTURES = {
    'benchmarks/reducers_cpu': partial(
        speed_up,
        'reducers',
        'reducers_cpu',
        'inference, ViT-S/16, 224 px, keep rates 1 to 0.1',
    ),
    'benchmarks/train_cpu_vit-s_224px': partial(
        speed_up,
        'training',
        'train_cpu_vit-s_224px',
        'training step, ViT-S/16, 224 px, with CLCA',
    ),
    'benchmarks/growth_cpu': growth,
}
