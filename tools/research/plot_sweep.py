# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw figures from the CLCA paper for sweep results, as PDF and PNG.

Accuracy against GMACs (Fig. 1 in the paper), accuracies by method (Fig. 3)
and the largest gradients per epoch (Fig. 4), also by model part if recorded.
Figures without results are skipped.
"""

from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter
from tables import read_results, read_sweep

from mmclca import cli
from mmclca.sweep.report import CLCA, summarize, to_table
from mmclca.utils.files import replace_file

STYLE = Path(__file__).with_name('paper.mplstyle')
ENDS = ('.pdf', '.png')
STYLES = dict(base='o--', clca='o-')
WHERE = ['dataset', 'backbone', 'variant']
SETTING = [*WHERE, 'method', 'size', 'keep_rate']


def panels(table, by, draw, file, ylabel='top-1 accuracy (%)', ends=ENDS):
    """Draw one panel per group, with one legend below."""
    if table.empty:
        print(f'Skipped    {file.name} (no results)')
        return
    groups = list(table.groupby(by))
    columns = 2 if len(groups) == 4 else min(3, len(groups))
    rows = -(-len(groups) // columns)
    size = 3.5 * columns, 1 + 2.4 * rows
    with plt.style.context(STYLE):
        figure = plt.figure(figsize=size, layout='constrained')
        axes = figure.subplots(rows, columns, squeeze=False).flat
        handles = {}
        for axis, (names, curves_by_part) in zip(axes, groups, strict=False):
            draw(axis, curves_by_part)
            title = ', '.join(map(str, filter(None, names)))
            axis.set(title=title, ylabel=ylabel)
            drawn, labels = axis.get_legend_handles_labels()
            handles.update(zip(labels, drawn, strict=True))
        for axis in axes[len(groups) :]:
            axis.remove()
        where = dict(loc='outside lower center', ncols=columns + 1)
        figure.legend(handles.values(), handles, **where)
        for end in ends:
            replace_file(file.with_suffix(end), figure.savefig)
            print(file.with_suffix(end))
        plt.close(figure)


def gmacs_axis(axis):
    """Set up a logarithmic x axis for GMACs."""
    axis.set(xlabel='GMACs', xscale='log')
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(ScalarFormatter())


def costs(axis, points):
    """Draw accuracy lines over GMACs, with standard deviations over seeds."""
    names = ['method', 'size', 'clca']
    for (method, size, clca), curves_by_part in points.groupby(names):
        axis.errorbar(
            curves_by_part.gmacs,
            curves_by_part.accuracy,
            curves_by_part.accuracy_std,
            fmt=STYLES[clca],
            label=f'{method}, {size} px, {CLCA[clca]}',
        )
    gmacs_axis(axis)


def methods(axis, table):
    """Draw one box per method, without and with CLCA."""
    kinds = table.method + ' ' + table.clca.map(CLCA)
    accuracies = dict(list(table.accuracy.groupby(kinds)))
    axis.boxplot(accuracies.values(), tick_labels=accuracies)
    axis.tick_params(axis='x', labelrotation=45)


def collect_curves(results):
    """Return the nonzero largest gradients, one row per run, part and epoch.

    The part ``per_epoch`` is the whole model.
    """
    rows = [
        dict(result['run'], part=part, epoch=epoch, gradient=value)
        for result in results
        for part, values in result['gradients'].items()
        if part != 'max' and len(values) > 1
        for epoch, value in enumerate(values, start=1)
        if value
    ]
    names = [*SETTING, 'clca', 'part', 'epoch', 'gradient']
    return pd.DataFrame(rows, columns=names)


def gradients(axis, curves):
    """Draw one line each for base, +CLA, +CLC and CLCA: means over seeds."""
    table = curves.pivot_table('gradient', 'epoch', 'clca')
    table.rename(columns=CLCA).plot(ax=axis, logy=True, legend=False)


def parts(norm, axis, curves):
    """Draw a heat map: one row per part, largest gradient as mean over
    seeds."""
    table = curves.pivot_table('gradient', 'part', 'epoch', sort=False)
    mesh = axis.pcolormesh(table.columns, table.index, table, norm=norm)
    axis.figure.colorbar(mesh, label='largest gradient')
    axis.set(xlabel='epoch', ylim=(len(table) - 0.5, -0.5))


def plot(results, out):
    """Draw all figures."""
    table = to_table(results)
    table = table[table.clca.isin(['base', 'clca'])]
    panels(summarize(table), WHERE, costs, out / 'accuracy_gmacs')
    alike = ['dataset', 'variant', 'size', 'keep_rate']
    panels(table, alike, methods, out / 'methods')
    curves = collect_curves(results)
    kinds = curves.groupby(SETTING).clca.transform('nunique')
    curves = curves[(curves.part == 'per_epoch') & (kinds == kinds.max())]
    panels(curves, SETTING, gradients, out / 'gradients', 'largest gradient')
    # runs with parts set in GradientStatsHook
    curves_by_part = [
        result for result in results if 'backbone' not in result['gradients']
    ]
    curves_by_part = collect_curves(curves_by_part)
    curves_by_part = curves_by_part[curves_by_part.part != 'per_epoch']
    draw = partial(
        parts,
        LogNorm(curves_by_part.gradient.min(), curves_by_part.gradient.max()),
    )
    panels(
        curves_by_part, [*SETTING, 'clca'], draw, out / 'gradients_by_part', ''
    )


def read(path):
    """Read sweep results from a table or a folder."""
    return read_sweep(path) if path.suffix == '.csv' else read_results(path)


def main():
    parser = cli.Parser(description=__doc__)
    which = 'tables of results (.csv), or folders of JSON files'
    parser.add('results', which, nargs='+', type=Path)
    parser.add('--out', 'folder to write to', type=Path, required=True)
    parser.add('--variant', 'these runs only', nargs='+')
    args = parser.parse_args()
    results = [r for path in args.results for r in read(path)]
    if args.variant:
        kept = args.variant
        results = [r for r in results if r['run']['variant'] in kept]
    plot(results, args.out)


if __name__ == '__main__':
    cli.run(main)
