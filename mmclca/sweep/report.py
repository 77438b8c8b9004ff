# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tables of runs, means over seeds and CLCA gains from sweep results."""

from collections.abc import Collection
from dataclasses import fields
from pathlib import Path

import pandas as pd

from mmclca.errors import Error
from mmclca.utils.files import replace_text, to_cell

from .compose import Cell

# fields of a cell except the seed
SETTING = [field.name for field in fields(Cell) if field.name != 'seed']
# result keys and their columns in the table of runs
RUN = {
    **{f'cell.{name}': name for name in (*SETTING, 'seed')},
    'accuracy': 'accuracy',
    'gmacs': 'gmacs',
    'params': 'params',
    'throughput.train': 'train_images_per_s',
    'throughput.test': 'test_images_per_s',
    'peak_memory_mb': 'peak_memory_mb',
    'gradients.max': 'max_gradient',
    'gradients.per_epoch': 'mean_gradient',
    'seconds': 'seconds',
    'started': 'started',
    'commit': 'commit',
    'config_hash': 'config_hash',
    'versions.torch': 'torch',
}
COSTS = [
    *('gmacs', 'params', 'train_images_per_s', 'test_images_per_s'),
    *('peak_memory_mb', 'max_gradient', 'mean_gradient', 'seconds'),
]
ORDER = [
    *('dataset', 'backbone', 'variant', 'method'),
    *('size', 'keep_rate', 'clca', 'seed'),
]
FLOATS = ('keep_rate', 'peak_memory_mb', 'max_gradient')
# labels for the values of ``clca``, in table order
CLCA = dict(base='base', cla='+CLA', clc='+CLC', clca='CLCA')
# title in the Markdown table, column in the summary, format
MARKDOWN = (
    ('data set', 'dataset', '{}'),
    ('backbone', 'backbone', '{}'),
    ('method', 'method', '{}'),
    ('px', 'size', '{}'),
    ('keep rate', 'keep_rate', '{:g}'),
    ('CLCA', 'clca', '{}'),
    ('variant', 'variant', '{}'),
    ('top-1 (%)', 'accuracy', '{}'),
    ('GMACs', 'gmacs', '{:.3f}'),
    ('params (M)', 'params', '{:.2f}'),
    ('train (images/s)', 'train_images_per_s', '{:.1f}'),
    ('test (images/s)', 'test_images_per_s', '{:.1f}'),
    ('memory (MiB)', 'peak_memory_mb', '{:.0f}'),
    ('largest gradient', 'max_gradient', '{:.3g}'),
    ('minutes', 'minutes', '{:.1f}'),
)


def to_table(results: list[dict]) -> pd.DataFrame:
    """Make a table with one row per run, sorted by setting and seed.

    ``accuracy`` is top-1 in percent, ``max_gradient`` the largest gradient
    magnitude in the run, and ``mean_gradient`` the mean over the maxima per
    epoch. Raises an Error without results or for duplicate cells.
    """
    if not results:
        raise Error('no results found: run tools/sweep.py GRID first')
    table = pd.json_normalize(results).reindex(columns=list(RUN))
    table = table.rename(columns=RUN).astype(dict.fromkeys(FLOATS, float))
    table['mean_gradient'] = [  # skips epochs without updates
        pd.Series(per_epoch, dtype=float).mean()
        for per_epoch in table.mean_gradient
    ]
    cell = [*SETTING, 'seed']
    duplicates = table[table.duplicated(cell)]
    if len(duplicates):
        raise Error(
            f'{len(duplicates)} duplicate results: use one sweep folder\n'
            + duplicates[cell].head().to_string(index=False)
        )
    return table.sort_values(ORDER, key=_rank, ignore_index=True)


def _rank(column: pd.Series) -> pd.Series:
    """Sort key: falling keep rates, and CLCA last."""
    if column.name == 'clca':
        return column.map(list(CLCA).index)
    return -column if column.name == 'keep_rate' else column


def summarize(table: pd.DataFrame) -> pd.DataFrame:
    """Average runs over seeds, one row per setting.

    Columns: ``seeds`` (number), ``accuracy``, ``accuracy_std`` (with
    ``n - 1``; NaN for one seed) and the mean costs.
    """
    groups = table.groupby(SETTING, sort=False, as_index=False)
    return groups.agg(
        seeds=('seed', 'count'),
        accuracy=('accuracy', 'mean'),
        accuracy_std=('accuracy', 'std'),
        **{name: (name, 'mean') for name in COSTS},
    )


def gains(table: pd.DataFrame) -> pd.DataFrame:
    """Gain of the head (CLA), the cache (CLC) and both, paired by seed.

    One row per setting and CLCA part with seeds in common with the base:
    ``seeds`` (number), ``gain`` (mean top-1 difference in points),
    ``gain_std`` (its standard deviation over seeds, with ``n - 1``; NaN for
    one seed) and ``gradient_ratio`` (mean ratio of the largest gradient to
    the base).
    """
    shared = [name for name in SETTING if name != 'clca']
    base = table[table.clca == 'base']
    others = table[table.clca != 'base']
    pairs = others.merge(base, on=[*shared, 'seed'], suffixes=('', '_base'))
    pairs = pairs.assign(
        gain=pairs.accuracy - pairs.accuracy_base,
        ratio=pairs.max_gradient / pairs.max_gradient_base,
    )
    groups = pairs.groupby([*shared, 'clca'], sort=False, as_index=False)
    return groups.agg(
        seeds=('seed', 'count'),
        gain=('gain', 'mean'),
        gain_std=('gain', 'std'),
        gradient_ratio=('ratio', 'mean'),
    )


def markdown(cells: pd.DataFrame, words: Collection[str]) -> str:
    """Format a table in Markdown; align columns in ``words`` left."""
    sides = ['left' if title in words else 'right' for title in cells]
    return cells.to_markdown(
        index=False, disable_numparse=True, colalign=sides
    )


def _over_seeds(
    means: pd.Series, stds: pd.Series, seeds: pd.Series
) -> pd.Series:
    """Format means, standard deviations (if any) and seed counts."""
    spread = stds.map(' ± {:.1f}'.format, na_action='ignore').fillna('')
    return means.map('{:.1f}'.format) + spread + seeds.map(' ({})'.format)


def summary_to_markdown(summary: pd.DataFrame) -> str:
    """Format a summary in Markdown, with a variant column if needed."""
    shown = summary.assign(
        accuracy=_over_seeds(
            summary.accuracy, summary.accuracy_std, summary.seeds
        ),
        clca=summary.clca.map(CLCA),
        params=summary.params / 1e6,
        minutes=summary.seconds / 60,
    )
    columns = {
        title: shown[name].map(form.format, na_action='ignore').fillna('')
        for title, name, form in MARKDOWN
        if name != 'variant' or shown.variant.any()
    }
    words = ('data set', 'backbone', 'method', 'CLCA', 'variant')
    return markdown(pd.DataFrame(columns), words)


def gains_to_markdown(gained: pd.DataFrame) -> str:
    """Format gains in Markdown, with a variant column if needed."""
    shared = ['dataset', 'backbone', 'method', 'keep_rate', 'size', 'variant']
    cells = gained.assign(
        text=_over_seeds(gained.gain, gained.gain_std, gained.seeds),
        ratio=gained.gradient_ratio.map('{:.2f}'.format),
        keep_rate=gained.keep_rate.map('{:g}'.format),
    )
    kinds = [kind for kind in CLCA if (gained.clca == kind).any()]
    titles = {('text', kind): CLCA[kind] for kind in kinds}
    titles |= {('ratio', k): f'gradient, {CLCA[k]}' for k in kinds}
    page = cells.pivot_table(
        ['text', 'ratio'], shared, 'clca', 'first', sort=False
    )
    page = page[list(titles)].set_axis(titles.values(), axis=1).fillna('')
    page = page.reset_index().astype(str)
    if not gained.variant.any():
        page = page.drop(columns='variant')
    return markdown(page, ('dataset', 'backbone', 'method', 'variant'))


def write_tables(results: list[dict], folder: str | Path) -> list[Path]:
    """Write the tables of a sweep; each file is replaced in one step.

    Returns the paths: ``runs.csv``, ``summary.csv``, ``summary.md`` and, for
    runs with and without CLC or CLA, ``gains.csv`` and ``gains.md``.
    """
    runs = to_table(results)
    summary, gained = summarize(runs), gains(runs)
    tables = dict(runs=runs, summary=summary)
    texts = dict(summary=summary_to_markdown(summary))
    if len(gained):
        tables['gains'], texts['gains'] = gained, gains_to_markdown(gained)
    paths = []
    for name, table in tables.items():
        paths.append(Path(folder) / f'{name}.csv')
        replace_text(paths[-1], table.map(to_cell).to_csv(index=False))
        if name in texts:
            paths.append(Path(folder) / f'{name}.md')
            replace_text(paths[-1], f'{texts[name]}\n')
    return paths
