# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Plots from the tables in docs/results."""

from colors import BLUE, GREEN, INK, ORANGE, PURPLE

VIT, CNN = 'vit_tiny', 'mobileone_s0'  # in the hero
# label offsets and alignments
SIDES = {
    'left': ((-9, 0), dict(ha='right', va='center')),
    'right': ((9, 0), dict(ha='left', va='center')),
    'right above': ((4, 4), dict(ha='left', va='bottom')),
    'right below': ((7, -4), dict(ha='left', va='top')),
}
MARKERS = dict(EViT='s', ToMe='D', ATS='o', SiT='^', ATC='P', MCTF='X')
# label, color and face for each part of CLCA
KINDS = dict(
    base=('base', ORANGE, 'white'),
    cla=('+CLA', GREEN, GREEN),
    clca=('CLCA', BLUE, BLUE),
)


def hero_points():
    """Yield label, GMACs, accuracy in %, half of an interval, color and label
    side for each point in the README picture.

    The 95% interval is that of the mean difference to ridge regression over
    the datasets; the datasets themselves differ far more.
    """
    from study.fit_values import FitReport
    from study.page_values import Report

    fit = FitReport(Report.read())
    ridge = fit.find(VIT, classifier='ridge')
    small = fit.find(VIT, classifier='ridge', img_size=160)
    logistic = fit.find(VIT, 'last layer', 'logistic')
    points = [
        ('fit', fit.find_default(VIT), BLUE, 'right'),
        ('fit --budget 0.45GMACs', fit.select(VIT, 0.45), BLUE, 'right'),
        ('fit --budget 0.3GMACs', fit.select(VIT, 0.3), BLUE, 'right above'),
        ('fit --best', fit.find(VIT), BLUE, 'left'),
        ('full ViT, ridge regression', ridge, ORANGE, 'left'),
        ('full ViT, ridge regression, 160 px', small, ORANGE, 'right'),
        ('full ViT, logistic regression', logistic, ORANGE, 'left'),
        ('fit, MobileOne-S0', fit.find(CNN), PURPLE, 'right below'),
    ]
    for label, row, color, side in points:
        gain = fit.compare(row, ridge)
        half = (gain['high'] - gain['low']) / 2
        yield label, row.gmacs, row['mean'], half, color, side


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
    from matplotlib.patheffects import withStroke

    halo = withStroke(linewidth=4, foreground='white')  # over intervals
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
            path_effects=[halo],
            **style,
        )
    axis.set(xlim=(0, 1.4), ylim=(65, 78))
    axis.set_xlabel('computation per photo (GMACs)')
    axis.set_ylabel('accuracy (%)')
    axis.set_title('ViT-Tiny, three photos per class')
    note = '95% intervals: difference to ridge regression on the full ViT'
    axis.text(0.98, 0.02, note, transform=axis.transAxes, ha='right', size=8)
    return figure


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
    'leaf40/accuracy_gmacs': leaf40,
    'leaf40/gradients_by_part': gradients,
    'representations/imagenet112_cka': imagenet112_cka,
    'representations/mae_cka': mae_cka,
}
