# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Plots for the page on few photos and few tokens."""

from colors import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, YELLOW
from results import plot

GRAY = '#BBBBBB'
RATE = 0.5  # in plots with a single keep rate
# color per method; all others are gray
METHODS = dict(DiffRate=BLUE, ATC=GREEN, ToMe=PURPLE, EViT=SKY)
CNNS = dict(
    mobileone_s0=INK, tf_efficientnet_lite0=YELLOW, tf_efficientnet_lite1=GRAY
)


def read_report():
    """Return the rows with ridge regression on all layers."""
    from study.page_values import Report
    from study.readings import ALL

    report = Report.read()
    rows = report.usable
    return report, rows[rows.features == ALL]


def accuracy_cost():
    """Plot accuracy against GMACs: reducers, smaller photos, fewer layers."""
    from study.titles import TITLES, VITS

    _, rows = read_report()
    figure, axes = plot(9.5, 4.6, 2, sharey=True)
    for axis, network in zip(axes, VITS, strict=True):
        draw_network(axis, rows[rows.network == network])
        for cnn, color in CNNS.items():
            points = rows[rows.network == cnn].sort_values('gmacs')
            style = dict(color=color, label=TITLES[cnn])
            axis.plot(points.gmacs, points['mean'], 's--', ms=4, **style)
        axis.set(title=TITLES[network], xlabel='GMACs')
    axes[0].set(ylabel='accuracy (%), three photos per class')
    handles = {}
    for axis in axes:
        lines, labels = axis.get_legend_handles_labels()
        handles.update(zip(labels, lines, strict=True))
    figure.legend(
        handles.values(),
        handles,
        loc='outside lower center',
        ncols=5,
        frameon=False,
        fontsize=9,
    )
    return figure


def draw_network(axis, rows):
    """Draw points per reducer, and lines without a reducer."""
    full = rows[rows.method == 'none']
    is_whole = full.depth == full.depth.max()
    is_large = full.img_size == 224
    for label, part, color in (
        ('smaller photos', full[is_whole], ORANGE),
        ('fewer layers', full[is_large], YELLOW),
    ):
        part = part.sort_values('gmacs')
        axis.plot(part.gmacs, part['mean'], 'o-', color=color, label=label)
    reduced = rows[(rows.method != 'none') & is_equal_size(rows)]
    for method, part in reduced.groupby('method'):
        color = METHODS.get(method, GRAY)
        label = method if method in METHODS else 'other reducers'
        style = dict(
            color=color, label=label, ms=6, zorder=2 + (color != GRAY)
        )
        axis.plot(part.gmacs, part['mean'], 'D', **style)


def is_equal_size(rows):
    """Return which rows have the largest image size."""
    return rows.img_size == 224


def layers():
    """Plot the similarity with the full network by layer."""
    from study.losses import REDUCED, Losses
    from study.page_values import Report

    similarities = Losses(Report.read()).list_similarities(RATE)['rows']
    titles = dict(keys='pairs of keys', attention='attention from CLS')
    figure, axes = plot(9.5, 4.2, 2, sharey=True)
    for axis, (part, title) in zip(axes, titles.items(), strict=True):
        for method, row in similarities.items():
            color = METHODS.get(method, GRAY)
            values = [row[f'{part}_{layer}'] for layer in REDUCED]
            label = method if method in METHODS else 'other reducers'
            style = dict(color=color, label=label, zorder=2 + (color != GRAY))
            axis.plot([*REDUCED], values, 'o-', ms=4, **style)
        axis.set(title=title, xlabel='layer')
    axes[0].set(ylabel="Spearman's correlation with the full network")
    lines, labels = axes[0].get_legend_handles_labels()
    by_label = dict(zip(labels, lines, strict=True))
    by_label['other reducers'] = by_label.pop('other reducers')  # last
    figure.legend(
        by_label.values(),
        by_label,
        loc='outside lower center',
        ncols=5,
        frameon=False,
    )
    return figure


def by_dataset():
    """Plot the difference to the full network by dataset, ViT-Tiny."""
    from study.titles import VITS

    report, rows = read_report()
    rows = rows[(rows.network == VITS[0]) & is_equal_size(rows)]
    full = rows[(rows.method == 'none') & (rows.depth == 12)].iloc[0]
    rows = rows[(rows.method != 'none') & (rows.keep_rate == RATE)]
    rows = rows.sort_values('difference', ascending=False)
    names = sorted(report.names, key=lambda x: -full[x])
    gains = (rows[names] - full[names]).astype(float)
    figure, axis = plot(9.5, 1.2 + 0.3 * len(rows))
    axis.grid(visible=False)
    limit = max(8.0, 0.6 * gains.abs().max(axis=None))
    image = axis.imshow(gains, cmap='PuOr', vmin=-limit, vmax=limit)
    axis.set_aspect('auto')
    axis.set_xticks(range(len(names)), names, rotation=40, ha='right')
    axis.set_yticks(range(len(rows)), rows.method)
    for row, values in enumerate(gains.to_numpy()):
        for column, value in enumerate(values):
            color = 'white' if abs(value) > 0.7 * limit else 'black'
            style = dict(ha='center', va='center', fontsize=8, color=color)
            axis.text(column, row, f'{value:+.1f}', **style)
    axis.set_title(
        f'ViT-Tiny, keep rate {RATE}: points against the full network'
    )
    figure.colorbar(image)
    return figure


PICTURES = {
    'few_photos/accuracy_cost': accuracy_cost,
    'few_photos/layers': layers,
    'few_photos/by_dataset': by_dataset,
}
