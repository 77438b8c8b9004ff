# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results of a sweep as tables of runs and of means over seeds."""

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from mmclca.utils.atomic_write import replace_file
from mmclca.utils.csv_files import to_cell

from .cell import Cell
from .gains import gains, gains_to_markdown
from .labels import CLCA, over_seeds
from .text_table import grid

# what makes a cell, its seed apart
SETTING = [field.name for field in fields(Cell) if field.name != 'seed']
COSTS = [
    *('gmacs', 'params', 'train_images_per_s', 'test_images_per_s'),
    *('peak_memory_mb', 'max_gradient', 'mean_gradient', 'seconds'),
]
ORDER = [
    *('dataset', 'backbone', 'variant', 'method'),
    *('size', 'keep_rate', 'clca', 'seed'),
]
# title of a column of the Markdown table, column of the summary, format
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
MAY_BE_NONE = ('keep_rate', 'peak_memory_mb', 'max_gradient')
WORDS = ('data set', 'backbone', 'method', 'CLCA', 'variant')


def to_table(results: list[dict]) -> pd.DataFrame:
    """One row a run.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.results.read_results`.

    Returns:
        pandas.DataFrame: Rows ordered by setting and seed. ``accuracy`` is
        top-1 in per cent, ``max_gradient`` the largest magnitude of a
        gradient in the run, ``mean_gradient`` the mean over epochs of the
        largest of each.

    Raises:
        ValueError: If there are no results, or two of one cell.
    """
    if not results:
        raise ValueError(
            'no results: `python tools/sweep.py GRID` runs the cells of a '
            'grid and writes a JSON file for each that is finished'
        )
    table = pd.DataFrame([_row(result) for result in results])
    _refuse_duplicates(table)
    return _in_order(table.astype(dict.fromkeys(MAY_BE_NONE, float)))


def _row(result: dict) -> dict:
    cell, gradients = result['cell'], result.get('gradients') or {}
    per_epoch = gradients.get('per_epoch') or [np.nan]
    return dict(
        **{name: cell[name] for name in SETTING},
        seed=cell['seed'],
        accuracy=result['accuracy'],
        gmacs=result['gmacs'],
        params=result['params'],
        train_images_per_s=result['throughput']['train'],
        test_images_per_s=result['throughput']['test'],
        peak_memory_mb=result['peak_memory_mb'],
        max_gradient=gradients.get('max', np.nan),
        # of the epochs that updated something
        mean_gradient=pd.Series(per_epoch, dtype=float).mean(),
        seconds=result['seconds'],
        started=result['started'],
        commit=result['commit'],
        config_hash=result['config_hash'],
        torch=result['versions']['torch'],
    )


def _refuse_duplicates(table: pd.DataFrame) -> None:
    cell = [*SETTING, 'seed']
    duplicates = table[table.duplicated(cell)]
    if len(duplicates):
        raise ValueError(
            f'more than one result of {len(duplicates)} cell(s); give the '
            'folders of one sweep only. Among the cells are\n'
            + duplicates[cell].head().to_string(index=False)
        )


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Methods after each other, keep rates falling, CLCA at the end."""
    rank = {kind: i for i, kind in enumerate(CLCA)}
    keys = table.assign(
        keep_rate=-table.keep_rate, clca=table.clca.map(rank)
    ).sort_values(ORDER)
    return table.loc[keys.index].reset_index(drop=True)


def summarize(table: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds of each setting.

    Args:
        table (pandas.DataFrame): Of :func:`to_table`.

    Returns:
        pandas.DataFrame: One row a setting, in the order of the table:
        ``seeds`` (how many), ``accuracy``, ``accuracy_std`` (with ``n - 1``;
        NaN for one seed) and the means of what it cost.
    """
    groups = table.groupby(SETTING, sort=False, as_index=False)
    return groups.agg(
        seeds=('seed', 'count'),
        accuracy=('accuracy', 'mean'),
        accuracy_std=('accuracy', 'std'),
        **{name: (name, 'mean') for name in COSTS},
    )


def to_markdown(summary: pd.DataFrame) -> str:
    """A summary for people to read.

    Args:
        summary (pandas.DataFrame): Of :func:`summarize`.

    Returns:
        str: A Markdown table; the number of seeds stands behind each
        accuracy. There is a column for variants where there are any.
    """
    accuracies = summary.accuracy, summary.accuracy_std, summary.seeds
    shown = summary.assign(
        accuracy=over_seeds(*accuracies),
        clca=summary.clca.map(CLCA),
        params=summary.params / 1e6,
        minutes=summary.seconds / 60,
    )
    columns = {
        title: shown[name].map(form.format, na_action='ignore').fillna('')
        for title, name, form in MARKDOWN
        if name != 'variant' or shown.variant.any()
    }
    return grid(pd.DataFrame(columns), WORDS)


def write_report(results: list[dict], folder: str | Path) -> list[Path]:
    """Write the tables of a sweep.

    Each file is replaced at once, so readers never see half of it.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.results.read_results`.
        folder (str | Path): Where to, made if need be.

    Returns:
        list[Path]: ``runs.csv``, ``runs.parquet``, ``summary.csv``,
        ``summary.md`` and, where there are runs with and without CLC or CLA,
        ``gains.csv`` and ``gains.md``.
    """
    runs = to_table(results)
    files = {
        'runs.csv': partial(runs.map(to_cell).to_csv, index=False),
        'runs.parquet': runs.to_parquet,
        **_writers('summary', summarize(runs), to_markdown),
    }
    gained = gains(runs)
    if len(gained):
        files |= _writers('gains', gained, gains_to_markdown)
    paths = [Path(folder) / name for name in files]
    for path, write in zip(paths, files.values(), strict=True):
        replace_file(path, write)
    return paths


def _writers(name: str, table: pd.DataFrame, as_markdown: Callable) -> dict:
    """What writes a table as CSV and as Markdown, by the name of the file."""
    text = f'{as_markdown(table)}\n'
    return {
        f'{name}.csv': partial(table.map(to_cell).to_csv, index=False),
        f'{name}.md': lambda path: path.write_text(text, encoding='utf-8'),
    }
