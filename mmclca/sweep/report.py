# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tables of runs, means over seeds and CLCA gains from sweep results."""

from collections.abc import Collection
from dataclasses import fields
from pathlib import Path

import pandas as pd

from mmclca.errors import Error
from mmclca.utils.files import replace_text, to_cell

from .runs import RunKey

# fields of a run's key except the seed
SETTING = [field.name for field in fields(RunKey) if field.name != 'seed']
# result keys and their columns in the table of runs
RUN = {
    **{f'run.{name}': name for name in (*SETTING, 'seed')},
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
    'gmacs',
    'params',
    'train_images_per_s',
    'test_images_per_s',
    'peak_memory_mb',
    'max_gradient',
    'mean_gradient',
    'seconds',
]
ORDER = [
    'dataset',
    'backbone',
    'variant',
    'method',
    'size',
    'keep_rate',
    'clca',
    'seed',
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
    epoch.

    Raises:
        Error: Without results, for duplicate runs, or texts as numbers.
    """
    if not results:
        raise Error('no results found: run tools/sweep.py GRID first')
    table = pd.json_normalize(results).reindex(columns=list(RUN))
    table = table.rename(columns=RUN)
    try:
        table = table.astype(dict.fromkeys(FLOATS, float))
    except (TypeError, ValueError) as error:
        raise Error(
            f'a result has a text in place of a number: {error}'
        ) from error
    table['mean_gradient'] = [  # skips epochs without updates
        pd.Series(per_epoch, dtype=float).mean()
        for per_epoch in table.mean_gradient
    ]
    key = [*SETTING, 'seed']
    duplicates = table[table.duplicated(key)]
    if len(duplicates):
        raise Error(
            f'{len(duplicates)} duplicate results: use one sweep folder\n'
            + duplicates[key].head().to_string(index=False)
        )
    return table.sort_values(
        ORDER,
        ascending=[name != 'keep_rate' for name in ORDER],
        key=lambda x: x.map([*CLCA].index) if x.name == 'clca' else x,
        ignore_index=True,
    )


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


def compute_gains(table: pd.DataFrame) -> pd.DataFrame:
    """Gain of the head (CLA), the cache (CLC) and both, paired by seed.

    One row per setting and CLCA part with seeds in common with the base:
    ``seeds`` (number), ``gain`` (mean top-1 difference in points),
    ``gain_std`` (its standard deviation over seeds, with ``n - 1``; NaN for
    one seed) and ``gradient_ratio`` (mean ratio of the largest gradient to
    the base).
    """
    shared = [name for name in SETTING if name != 'clca']
    base = table[table.clca == 'base']
    ablated = table[table.clca != 'base']
    pairs = ablated.merge(base, on=[*shared, 'seed'], suffixes=('', '_base'))
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


def to_markdown(table: pd.DataFrame, left: Collection[str]) -> str:
    """Format a table in Markdown; align columns in ``left`` left."""
    sides = ['left' if title in left else 'right' for title in table]
    return table.to_markdown(
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
    columns = summary.assign(
        accuracy=_over_seeds(
            summary.accuracy, summary.accuracy_std, summary.seeds
        ),
        clca=summary.clca.map(CLCA),
        params=summary.params / 1e6,
        minutes=summary.seconds / 60,
    )
    texts = {
        title: columns[name].map(form.format, na_action='ignore').fillna('')
        for title, name, form in MARKDOWN
        if name != 'variant' or columns.variant.any()
    }
    left = ('data set', 'backbone', 'method', 'CLCA', 'variant')
    return to_markdown(pd.DataFrame(texts), left)


def gains_to_markdown(gains: pd.DataFrame) -> str:
    """Format gains in Markdown, with a variant column if needed."""
    shared = ['dataset', 'backbone', 'method', 'keep_rate', 'size', 'variant']
    runs = gains.assign(
        gain=_over_seeds(gains.gain, gains.gain_std, gains.seeds),
        ratio=gains.gradient_ratio.map('{:.2f}'.format),
        keep_rate=gains.keep_rate.map('{:g}'.format),
    )
    parts = [part for part in CLCA if (gains.clca == part).any()]
    titles = {('gain', part): CLCA[part] for part in parts}
    titles |= {('ratio', part): f'gradient, {CLCA[part]}' for part in parts}
    page = runs.pivot_table(
        ['gain', 'ratio'], shared, 'clca', 'first', sort=False
    )
    page = page[list(titles)].set_axis(titles.values(), axis=1).fillna('')
    page = page.reset_index().astype(str)
    if not gains.variant.any():
        page = page.drop(columns='variant')
    return to_markdown(page, ('dataset', 'backbone', 'method', 'variant'))


def write_tables(results: list[dict], folder: str | Path) -> list[Path]:
    """Write the tables of a sweep; each file is replaced in one step.

    Returns the paths: ``runs.csv``, ``summary.csv``, ``summary.md`` and, for
    runs with and without CLC or CLA, ``gains.csv`` and ``gains.md``.
    """
    runs = to_table(results)
    summary, gains = summarize(runs), compute_gains(runs)
    tables = dict(runs=runs, summary=summary)
    pages = dict(summary=summary_to_markdown(summary))
    if len(gains):
        tables['gains'], pages['gains'] = gains, gains_to_markdown(gains)
    paths = []
    for name, table in tables.items():
        paths.append(Path(folder) / f'{name}.csv')
        replace_text(paths[-1], table.map(to_cell).to_csv(index=False))
        if name in pages:
            paths.append(Path(folder) / f'{name}.md')
            replace_text(paths[-1], f'{pages[name]}\n')
    return paths
