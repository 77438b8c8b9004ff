# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the head (CLA), the cache (CLC) and both add, seed by seed."""

import pandas as pd

from .labels import CLCA, over_seeds

SETTING = ['dataset', 'backbone', 'method', 'keep_rate', 'size', 'variant']


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
    groups = pairs.groupby([*SETTING, 'clca'], sort=False)
    return groups.agg(
        seeds=('seed', 'count'),
        gain=('gain', 'mean'),
        gain_std=('gain', 'std'),
        gradient_ratio=('ratio', 'mean'),
    ).reset_index()


def gains_to_markdown(gained: pd.DataFrame) -> str:
    """Gains for people to read, a row a setting, the number of seeds behind
    each; a column for variants where there are any.

    Args:
        gained (pandas.DataFrame): Of :func:`gains`.
    """
    cells = gained.assign(
        text=list(map(over_seeds, gained.gain, gained.gain_std, gained.seeds)),
        ratio=gained.gradient_ratio.map('{:.2f}'.format),
    )
    kinds = [kind for kind in CLCA if (gained.clca == kind).any()]
    rows = cells.groupby(SETTING, sort=False)
    page = pd.DataFrame([_row(*row, kinds) for row in rows])
    if not gained.variant.any():
        page = page.drop(columns='variant')
    return page.to_markdown(index=False, disable_numparse=True)


def _row(setting: tuple, group: pd.DataFrame, kinds: list[str]) -> dict:
    words = dict(zip(SETTING, setting, strict=True))
    by_kind = group.set_index('clca')
    return dict(
        words,
        keep_rate=f'{words["keep_rate"]:g}',
        **{CLCA[k]: by_kind.text.get(k, '') for k in kinds},
        **{f'gradient, {CLCA[k]}': by_kind.ratio.get(k, '') for k in kinds},
    )
