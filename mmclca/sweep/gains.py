# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the head (CLA), the cache (CLC) and both add, seed by seed."""

import pandas as pd

from .labels import CLCA, over_seeds
from .text_table import grid

SETTING = ['dataset', 'backbone', 'method', 'keep_rate', 'size', 'variant']
WORDS = ('dataset', 'backbone', 'method', 'variant')


def gains(table: pd.DataFrame) -> pd.DataFrame:
    """Differences of runs to the run of the same seed without both.

    Args:
        table (pandas.DataFrame): Of :func:`mmclca.sweep.report.to_table`.

    Returns:
        pandas.DataFrame: One row for each setting and each of +CLA, +CLC and
        CLCA that has seeds in common with the base: ``seeds`` (how many),
        ``gain`` (mean difference of top-1, in points), ``gain_std`` (its
        standard deviation over seeds, with ``n - 1``; NaN for one seed),
        ``gradient_ratio`` (mean over seeds of the largest gradient over that
        of the base).
    """
    base = table[table.clca == 'base']
    others = table[table.clca != 'base']
    pairs = others.merge(base, on=[*SETTING, 'seed'], suffixes=('', '_base'))
    pairs = pairs.assign(
        gain=pairs.accuracy - pairs.accuracy_base,
        ratio=pairs.max_gradient / pairs.max_gradient_base,
    )
    groups = pairs.groupby([*SETTING, 'clca'], sort=False, as_index=False)
    return groups.agg(
        seeds=('seed', 'count'),
        gain=('gain', 'mean'),
        gain_std=('gain', 'std'),
        gradient_ratio=('ratio', 'mean'),
    )


def gains_to_markdown(gained: pd.DataFrame) -> str:
    """Gains for people to read, a row a setting, the number of seeds behind
    each; a column for variants where there are any.

    Args:
        gained (pandas.DataFrame): Of :func:`gains`.
    """
    cells = gained.assign(
        text=over_seeds(gained.gain, gained.gain_std, gained.seeds),
        ratio=gained.gradient_ratio.map('{:.2f}'.format),
        keep_rate=gained.keep_rate.map('{:g}'.format),
    )
    kinds = [kind for kind in CLCA if (gained.clca == kind).any()]
    titles = {('text', kind): CLCA[kind] for kind in kinds}
    titles |= {('ratio', k): f'gradient, {CLCA[k]}' for k in kinds}
    page = cells.pivot(index=SETTING, columns='clca', values=['text', 'ratio'])
    page = page[list(titles)].set_axis(titles.values(), axis=1).fillna('')
    in_order = pd.MultiIndex.from_frame(cells[SETTING].drop_duplicates())
    page = page.loc[in_order].reset_index().astype(str)
    if not gained.variant.any():
        page = page.drop(columns='variant')
    return grid(page, WORDS)
