# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Plots from the tables in docs/results."""

from colors import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, YELLOW

# points in the hero: label, columns in the table, color, side for the label;
# the models are selected by fit with ViT-Tiny
VIT = dict(network='vit_tiny', img_size=224, classifier='fit')
FULL = dict(VIT, method='none')
RIDGE = dict(FULL, classifier='CLS and average, all layers, ridge')
HERO = (
    ('fit', dict(VIT, method='DiffRate'), BLUE, 'right'),
    (
        'fit --budget 0.45GMACs',
        dict(VIT, method='ATC', img_size=192),
        BLUE,
        'right',
    ),
    (
        'fit --budget 0.3GMACs',
        dict(VIT, method='ATC', img_size=160),
        BLUE,
        'right above',
    ),
    ('fit --best', FULL, BLUE, 'left'),
    ('full ViT, ridge regression', RIDGE, ORANGE, 'left'),
    (
        'full ViT, ridge regression, 160 px',
        dict(RIDGE, img_size=160),
        ORANGE,
        'right',
    ),
    (
        'full ViT, logistic regression',
        dict(FULL, classifier='CLS, last layer, logistic'),
        ORANGE,
        'left',
    ),
    (
        'fit, MobileOne-S0',
        dict(network='mobileone_s0', img_size=224, classifier='fit'),
        PURPLE,
        'right below',
    ),
)
# label offsets and alignments
SIDES = {
    'left': ((-9, 0), dict(ha='right', va='center')),
    'right': ((9, 0), dict(ha='left', va='center')),
    'right above': ((4, 4), dict(ha='left', va='bottom')),
    'right below': ((7, -4), dict(ha='left', va='top')),
}
# label and color for the models that fit selects by budget
SELECTED = dict(
    deit_tiny=('fit, DeiT-Tiny', BLUE), vit_tiny=('fit, ViT-Tiny', SKY)
)
# label and color for each other line: network, method and classifier
RIDGE_ALL = RIDGE['classifier']
LINES = {
    ('mobileone_s0', 'none', 'fit'): ('fit, MobileOne-S0', PURPLE),
    ('fastvit_t8', 'none', 'fit'): ('fit, FastViT-T8', INK),
    ('deit_tiny', 'none', RIDGE_ALL): ('full DeiT-Tiny, ridge', YELLOW),
    ('vit_tiny', 'none', RIDGE_ALL): ('full ViT-Tiny, ridge', ORANGE),
}
MARKERS = dict(EViT='s', ToMe='D', ATS='o', SiT='^', ATC='P', MCTF='X')
# label, color and face for each part of CLCA
KINDS = dict(
    base=('base', ORANGE, 'white'),
    cla=('+CLA', GREEN, GREEN),
    clca=('CLCA', BLUE, BLUE),
)


def hero_points():
    """Return label, GMACs, accuracy in %, half of an interval, color and label
    side for each point in the README picture.

    The 95% interval is that of the mean difference to ridge regression over
    the datasets; the datasets themselves differ far more.
    """
    from frontier import get_dataset_columns, table_of_rows
    from tables import half_width, select

    table = table_of_rows()
    sets, points = get_dataset_columns(table), []
    reference = select(table, RIDGE).iloc[0]
    for label, setting, color, side in HERO:
        row = select(table, setting).iloc[0]
        gains = (row[sets] - reference[sets]).astype(float)
        half = half_width(gains)
        points.append((label, row.gmacs, row['mean'], half, color, side))
    return points


def plot(width, height, columns=1, **options):
    """Return a figure and its axes, with a grid and two spines."""
    import matplotlib.pyplot as plt

    plt.rcParams['font.size'] = 10
    figure, axes = plt.subplots(
        1,
        columns,
        figsize=(width, height),
        dpi=150,
        layout='constrained',
        **options,
    )
    for axis in figure.axes:
        axis.grid(alpha=0.25)
        axis.set_axisbelow(True)
        axis.spines[['top', 'right']].set_visible(False)
    return figure, axes


def accuracy_cost():
    """Plot accuracy against GMACs for fit and the full ViT, ViT-Tiny."""
    figure, axis = plot(7.2, 4.2)
    for label, gmacs, accuracy, half, color, side in hero_points():
        style = dict(fmt='o', color=color, ms=8, elinewidth=1, alpha=0.9)
        axis.errorbar(gmacs, accuracy, half, **style)
        offset, style = SIDES[side]
        style = dict(style, weight='bold' if label == 'fit' else None)
        axis.annotate(
            f'{label}: {accuracy:.1f}%',
            (gmacs, accuracy),
            offset,
            textcoords='offset points',
            color=color,
            **style,
        )
    axis.set(xlim=(0, 1.4), ylim=(65, 80))
    axis.set_xlabel('computation per photo (GMACs)')
    axis.set_ylabel('accuracy (%)')
    axis.set_title('ViT-Tiny, three photos per class, mean of eleven datasets')
    note = '95% intervals: difference to ridge regression on the full ViT'
    axis.text(0.98, 0.02, note, transform=axis.transAxes, ha='right', size=8)
    return figure


def frontier():
    """Plot accuracy against GMACs and against time, one point per size."""
    from frontier import table_of_rows
    from plot_sweep import gmacs_axis
    from tables import select

    table = table_of_rows()
    lines = [
        (*style, selected_by_fit(table, network))
        for network, style in SELECTED.items()
    ]
    for key, style in LINES.items():
        keys = dict(zip(('network', 'method', 'classifier'), key, strict=True))
        lines.append((*style, select(table, keys).sort_values('gmacs')))
    figure, axes = plot(9.5, 4.4, 2, sharey=True)
    for label, color, rows in lines:
        for axis, cost in zip(axes, ('gmacs', 'ms'), strict=True):
            style = dict(color=color, label=label)
            axis.plot(rows[cost], rows['mean'], 'o-', **style)
    gmacs_axis(axes[0])
    axes[0].set(xlabel='GMACs', ylabel='accuracy (%), mean of eleven datasets')
    axes[1].set(xlabel='ms per photo, ONNX Runtime, one thread')
    figure.suptitle('Three photos per class, 128 to 256 px')
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc='outside lower center', ncols=3, frameon=False
    )
    return figure


def selected_by_fit(table, network):
    """Return the rows of the models that some budget in GMACs selects.

    ``fit`` takes the first candidate within the budget, so these models are
    cheaper than all candidates before them.
    """
    import pandas as pd
    from tables import select

    from mmclca.fitting.candidates import DEIT, VIT_TINY

    candidates = dict(deit_tiny=DEIT, vit_tiny=VIT_TINY)[network]
    rows = []
    for options, img_size, _ in candidates:
        method = options['method'] or 'none'
        keys = dict(network=network, method=method, img_size=img_size)
        row = select(table, dict(keys, classifier='fit')).iloc[0]
        # fit accepts costs of 1% above the budget
        if all(1.01 * row.gmacs < cheaper.gmacs for cheaper in rows):
            rows.append(row)
    return pd.DataFrame(rows)


def read_sweep(study):
    """Return one result per run in a sweep."""
    from tables import RESULTS, read_sweep

    return read_sweep(RESULTS / f'{study}.csv')


def leaf40():
    """Plot accuracy against GMACs on leaf40: base, CLA and CLCA."""
    from matplotlib.lines import Line2D
    from plot_sweep import gmacs_axis

    from mmclca.sweep.report import summarize, to_table

    table = summarize(to_table(read_sweep('leaf40')))
    table = table[table.variant == ''].sort_values('gmacs')
    figure, axis = plot(6, 4.4)
    for (method, variant), rows in table.groupby(['method', 'clca']):
        if variant in KINDS and method in MARKERS:
            _, color, face = KINDS[variant]
            axis.errorbar(
                rows.gmacs,
                rows.accuracy,
                rows.accuracy_std,
                fmt=MARKERS[method] + ('-' if method == 'EViT' else ''),
                color=color,
                mfc=face,
                lw=1.4 if method == 'EViT' else 0.8,
                alpha=1 if method == 'EViT' else 0.5,
            )
    evit = table[(table.method == 'EViT') & (table.clca == 'cla')]
    for run in evit.itertuples():
        above = run.gmacs, run.accuracy + run.accuracy_std
        style = dict(textcoords='offset points', ha='center', color=INK)
        axis.annotate(f'{run.keep_rate:g}', above, (0, 5), **style)
    gmacs_axis(axis)
    axis.set(xlabel='GMACs', ylabel='accuracy (%)')
    axis.set_title('leaf40_white, DeiT-Tiny; line and keep rates: EViT')
    handles = [
        Line2D([], [], color=color, mfc=face, marker='s', label=name)
        for name, color, face in KINDS.values()
    ]
    handles += [
        Line2D([], [], color=INK, marker=marker, ls='', label=method)
        for method, marker in MARKERS.items()
    ]
    axis.legend(handles=handles, loc='lower right', ncols=2, frameon=False)
    return figure


def gradients():
    """Plot the largest gradients per layer and epoch, one panel per CLCA
    variant."""
    from matplotlib.colors import LogNorm
    from plot_sweep import CLCA, collect_curves

    runs = [
        run
        for run in read_sweep('leaf40_why')
        if run['run']['variant'] == 'by-layer'
        and run['run']['backbone'] == 'deit-tiny-p16'
    ]
    table = collect_curves(runs)
    table = table[table.part != 'per_epoch']
    layer = table.part.str.extract(r'(\d+)$')[0]
    table['row'] = ('layer ' + layer).fillna('head')
    rows = [*(f'layer {n}' for n in range(12)), 'head']
    figure, axes = plot(10, 3.8, len(CLCA), sharey=True)
    norm = LogNorm(table.gradient.min(), table.gradient.max())
    for axis, (variant, title) in zip(axes, CLCA.items(), strict=True):
        curves = table[table.clca == variant]
        means = curves.pivot_table('gradient', 'row', 'epoch').loc[rows]
        mesh = axis.pcolormesh(means.columns, rows, means, norm=norm)
        axis.set(title=title, xlabel='epoch', ylim=(len(rows) - 0.5, -0.5))
        axis.grid(visible=False)
    figure.colorbar(mesh, ax=axes, label='largest gradient')
    figure.suptitle(
        'leaf40, DeiT-Tiny, 224 px, EViT, keep rate 0.25, mean of 3 seeds'
    )
    return figure


def layer_similarity(model):
    """Plot the CKA between all layers in a pretrained model."""
    from tables import read, select

    table = select(read('representations_cka'), dict(model=model))
    table = table.pivot(index='layer', columns='other', values='cka')
    figure, axis = plot(5, 4.4)
    axis.grid(visible=False)
    image = axis.imshow(table, 'cividis', vmin=0.4, vmax=1, origin='lower')
    for (row, column), value in table.stack().items():
        color = 'white' if value < 0.7 else 'black'
        style = dict(ha='center', va='center', fontsize=6.5, color=color)
        axis.text(column, row, f'{value:.2f}', **style)
    axis.set(xlabel='layer', ylabel='layer')
    axis.set(xticks=table.columns, yticks=table.index)
    figure.colorbar(image, label='CKA')
    return figure


def imagenet112_cka():
    """Plot the CKA between layers in DeiT-Tiny at 112 px."""
    return layer_similarity('imagenet112')


def mae_cka():
    """Plot the CKA between layers in MAE-Lite."""
    return layer_similarity('mae')


PICTURES = {
    'accuracy_cost': accuracy_cost,
    'frontier/accuracy_cost': frontier,
    'leaf40/accuracy_gmacs': leaf40,
    'leaf40/gradients_by_part': gradients,
    'representations/imagenet112_cka': imagenet112_cka,
    'representations/mae_cka': mae_cka,
}
