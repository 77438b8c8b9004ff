# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Plots from the tables in docs/benchmarks."""

from functools import partial

from colors import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, YELLOW
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


def efficiency(study, run, title):
    """Plot the share of the GMACs ratio that each method reaches in speed."""
    table = read(study, run)
    table = table[~table.method.isin(MODELS)]
    order = table.groupby('method').efficiency.median().sort_values().index
    rates = sorted(table.keep_rate.unique(), reverse=True)
    figure, axis = plot(6.4, 4.2)
    axis.axvline(1, color=INK, ls='--', lw=1)
    for number, rate in enumerate(rates):
        of_rate = table[table.keep_rate == rate]
        # side by side: points of several keep rates would cover each other
        rows = of_rate.method.map(order.get_loc) + 0.12 * (
            number - len(rates) / 2
        )
        style = dict(color=COLORS[number], marker=MARKERS[number], ls='')
        with_clca = of_rate.clca != 'no'
        axis.plot(of_rate.efficiency, rows, mfc='white', ms=5, **style)
        axis.plot(
            of_rate.efficiency[with_clca], rows[with_clca], ms=5, **style
        )
    axis.set_yticks(range(len(order)), order)
    axis.set(title=title, xlabel='speed-up / GMACs ratio')
    handles = [*rate_handles(rates), *clca_handles(table)]
    figure.legend(handles=handles, loc='outside right center', frameon=False)
    return figure


def rate_handles(rates):
    """Return one legend entry per keep rate."""
    from matplotlib.lines import Line2D

    styles = zip(rates, COLORS, MARKERS, strict=False)
    return [
        Line2D(
            [], [], color=color, marker=marker, ls='', label=f'keep {rate:g}'
        )
        for rate, color, marker in styles
    ]


def clca_handles(table):
    """Return the legend entries of rows without and with CLCA, if both are
    there."""
    from matplotlib.lines import Line2D

    if table.clca.nunique() == 1:
        return []
    faces = {'without CLCA': 'white', 'with CLCA': INK}
    style = dict(marker='o', ls='', color=INK)
    return [
        Line2D([], [], mfc=face, label=label, **style)
        for label, face in faces.items()
    ]


def growth():
    """Plot time, memory and GMACs against the image size."""
    from matplotlib.ticker import NullLocator

    table = read('growth', 'growth_cpu')
    figure, axes = plot(10, 3.9, 3)
    for axis, (column, title) in zip(axes, GROWTH, strict=True):
        for (name, label), color in zip(NAMES.items(), COLORS, strict=False):
            rows = table[table.label == name]
            axis.plot(
                rows.pixels, rows[column], 'o-', color=color, label=label
            )
        axis.set(title=title, xlabel='image size (px)')
        axis.set(xscale='log', yscale='log')
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xticks(rows.pixels, rows.pixels)
        axis.yaxis.set_major_formatter('{x:g}')
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc='outside lower center', ncols=3, frameon=False
    )
    return figure


PICTURES = {
    'benchmarks/reducers_cpu': partial(
        efficiency,
        'reducers',
        'reducers_cpu',
        'inference, ViT-S/16, 224 px, batch size 8',
    ),
    'benchmarks/train_cpu_vit-s_224px': partial(
        efficiency,
        'training',
        'train_cpu_vit-s_224px',
        'training step, ViT-S/16, 224 px, with CLCA',
    ),
    'benchmarks/growth_cpu': growth,
}
