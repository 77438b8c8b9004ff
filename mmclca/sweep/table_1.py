# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Table I of the CLCA paper: own means beside its numbers."""

from pathlib import Path

import pandas as pd

from .labels import INERT, dataset_label, percent, plus_minus, seeds_label
from .missing import MissingResultsError, left_out_if_missing
from .report import summarize, to_table
from .text_table import DASH, TextTable, write_table

DATASETS = ('cotton80', 'soyageing', 'soyglobal')
SIZE = 448
# method: accuracies on these data sets, 10^9 multiply-accumulates
QUOTED = {
    'ViT': (52.5, 67.0, 40.6, 78.5),
    'DeiT': (54.2, 69.5, 45.3, 78.5),
    'TransFG': (54.6, 72.2, 21.2, 447.9),
    'SIM-Trans': (54.6, 34.8, 70.7, 81.8),
    'CSDNet': (57.9, 75.4, 56.3, 78.5),
    'CLCA (10 %)': (55.6, 87.4, 61.1, 25.2),
    'CLCA (70 %)': (67.8, 88.3, 58.2, 50.9),
}
PLAIN = {'ViT': 'vit-base-p16', 'DeiT': 'deit-base-p16'}
CLCA = {'CLCA (10 %)': 0.1, 'CLCA (70 %)': 0.7}


def write_table_1(results: list[dict], folder: str | Path) -> list[Path]:
    """Write Table I and its like for other data sets.

    A table that would have no cell of its own is left out with a warning.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.results.read_results`.
        folder (str | Path): Where to, made if need be.

    Returns:
        list[Path]: ``table_1`` and ``table_1_others``, as ``.md`` and as
        ``.tex``.
    """
    summary = summarize(to_table(results))
    paths = []
    for name, make in TABLES.items():
        with left_out_if_missing(name):
            paths += write_table(make(summary), Path(folder) / name)
    return paths


def paper_table(summary: pd.DataFrame) -> TextTable:
    """Table I: ViT-B/16 at 448 px, own means beside the quoted numbers.

    ViT and DeiT are the cells without CLCA and without a reduction; CLCA is
    EViT with the one backbone whose mean over most of its cells is best.

    Args:
        summary (pandas.DataFrame): Of :func:`mmclca.sweep.report.summarize`.

    Raises:
        MissingResultsError: If none of its cells is among the results.
    """
    wanted = "size == @SIZE and dataset in @DATASETS and variant == ''"
    cells = summary.query(wanted)
    clca = with_clca(cells)
    best = best_backbone(clca[clca.keep_rate.isin(CLCA.values())])
    own = {name: plain(cells, backbone) for name, backbone in PLAIN.items()}
    for name, rate in CLCA.items():
        own[name] = clca[(clca.backbone == best) & (clca.keep_rate == rate)]
    if all(cells.empty for cells in own.values()):
        raise MissingResultsError(
            f'cells at {SIZE} px of {", ".join(DATASETS)}: '
            f"{' or '.join(PLAIN.values())} with clca='base' and keep rate "
            "1, or EViT with clca='clca' and keep rate 0.1 or 0.7"
        )
    nothing = cells.iloc[:0]
    ours = {name: _own(own.get(name, nothing), DATASETS) for name in QUOTED}
    titles = [*map(dataset_label, DATASETS)]
    groups = dict(
        ours=pd.DataFrame(ours, [*titles, 'GMACs']).T,
        quoted=pd.DataFrame(QUOTED, [*titles, 'GFLOPs']).T.astype(str),
    )
    shown = pd.concat(groups, axis=1)
    shown.insert(0, ('', 'method'), shown.index)
    caption = f'Top-1 accuracy (%) and cost at {SIZE} px. {_spread(own)}'
    return TextTable(caption, shown, _notes(best))


def _notes(best: str | None) -> list[str]:
    chosen = (
        f'CLCA, ours: EViT on {best}, the backbone with the best mean test '
        'accuracy of these rows; the paper does not name its own.'
    )
    quoted = 'Quoted: numbers of the CLCA paper, Table I.'
    return [chosen, quoted] if best else [quoted]


def other_table(summary: pd.DataFrame) -> TextTable:
    """A table of the same form for the other data sets.

    Each backbone and size without CLCA and without a reduction, then EViT
    with CLCA at each keep rate.

    Args:
        summary (pandas.DataFrame): Of :func:`mmclca.sweep.report.summarize`.

    Raises:
        MissingResultsError: If none of these cells is among the results.
    """
    others = summary[~summary.dataset.isin(DATASETS) & (summary.variant == '')]
    cells = {}
    for (backbone, size), own in others.groupby(['backbone', 'size']):
        model = (backbone, str(size))
        cells[(*model, 'no reduction')] = plain(own, backbone)
        clca = with_clca(own).sort_values('keep_rate')
        for rate, same in clca.groupby('keep_rate'):
            cells[(*model, f'CLCA ({percent(rate)} %)')] = same
    cells = {names: own for names, own in cells.items() if len(own)}
    if not cells:
        raise MissingResultsError(
            f'cells of other data sets than {", ".join(DATASETS)} with '
            "clca='base' and keep rate 1 or EViT with clca='clca'"
        )
    names = sorted({name for own in cells.values() for name in own.dataset})
    titles = ['backbone', 'px', 'method', *map(dataset_label, names), 'GMACs']
    rows = [[*model, *_own(own, names)] for model, own in cells.items()]
    return TextTable(
        f'Top-1 accuracy (%) and cost. {_spread(cells)}',
        pd.DataFrame(rows, columns=titles),
        ['CLCA: EViT with cross-layer cache and aggregation.'],
    )


def plain(cells: pd.DataFrame, backbone: str) -> pd.DataFrame:
    """Those of a backbone without CLCA and without a reduction, of one
    method a data set: several that reduce nothing are the same model."""
    unreduced = "clca == 'base' and keep_rate == 1 and method in @INERT"
    cells = cells.query(f'backbone == @backbone and {unreduced}')
    order = cells.method.map(INERT.index).sort_values(kind='stable').index
    return cells.loc[order].drop_duplicates(['dataset', 'size', 'variant'])


def with_clca(cells: pd.DataFrame) -> pd.DataFrame:
    """Those of EViT with CLCA."""
    return cells.query("method == 'EViT' and clca == 'clca'")


def best_backbone(cells: pd.DataFrame) -> str | None:
    """The backbone of the best mean, of those that have most of the cells.

    Args:
        cells (pandas.DataFrame): Means of settings, of all backbones.

    Returns:
        str | None: Its name, None if there are no cells.
    """
    means = cells.groupby('backbone').accuracy.agg(['count', 'mean'])
    ranked = means.sort_values(['count', 'mean'], ascending=False)
    return None if ranked.empty else ranked.index[0]


def _own(cells: pd.DataFrame, datasets) -> list[str]:
    """Accuracy on each data set and mean cost, a dash where there is none."""
    by_dataset = cells.set_index('dataset')
    accuracies = [
        plus_minus(*by_dataset.loc[name, ['accuracy', 'accuracy_std']])
        if name in by_dataset.index
        else DASH
        for name in datasets
    ]
    return [*accuracies, DASH if cells.empty else f'{cells.gmacs.mean():.2f}']


def _spread(cells: dict) -> str:
    seeds = pd.concat([own.seeds for own in cells.values()])
    return f'Ours: mean ± standard deviation over {seeds_label(seeds)}.'


TABLES = dict(table_1=paper_table, table_1_others=other_table)
