# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What single changes to our recipe bring, on the same draws."""

import pandas as pd

from ..text_table import grid
from .compare import Difference, difference
from .runs import IMG_SIZE, OURS_TRAINED
from .tables import number, signed

# by the word before the draw in a variant, in the order of the table
CHANGES = {
    'jitter': 'colour jitter, 0.4',
    'erasing': 'random erasing of a quarter of the images',
    'mixup': 'mixup, α = 0.2',
    'ema': 'average of the weights (EMA, 0.98)',
    'flip-test': 'image and mirror image averaged in the test: twice the cost',
    'cache': 'cache (CLC) with one CLR token',
    'cache-no-clr': 'cache without CLR tokens',
    'cache-protected': 'cache whose CLR token is protected',
    'normalized': 'weights of the fused token sum to one',
    'topk': 'TopK 0.1: no fused token',
    'ats': 'ATS 0.1',
    'tome': 'ToMe 0.5, compared with EViT 0.5',
    'before': 'layers 2, 5 and 8 alone: before the reductions',
    'after': 'layers 3, 6 and 8 alone: after the reductions',
    'all-layers': 'all twelve layers, and a reduction in layer 9',
    'not-frozen': 'no frozen layers, instead of three',
    'lr1e-3': 'learning rate 1e-3, instead of 2e-3',
    'half': 'half of the steps: 80',
    'double': 'twice the steps: 320',
    'no-decay': 'one learning rate for all layers, instead of decay 0.75',
    'no-smoothing': 'no label smoothing, instead of 0.1',
    'no-probe': 'a head that starts at zero, instead of the probe',
}
RECIPE = 'the recipe, {} {:g}'
WORDS = ('one change', 'reading')


def to_changes(runs: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """One row a change, after one for each recipe that they change.

    Args:
        runs (pandas.DataFrame): Those of changes, of
            :func:`mmclca.sweep.few_photographs.to_runs`; ``line`` is one of
            ``CHANGES``.
        ours (pandas.DataFrame): Those that they are compared with: our
            recipe with the same keep rate and EViT. Other lines and draws
            are passed over.

    Returns:
        pandas.DataFrame: ``change`` (in words), means of ``accuracy``,
        ``draws`` (how many), ``gmacs``, ``seconds`` (of the CPU, median) and
        ``difference`` (None of the recipe itself). Changes without a draw
        that the recipe has too are left out.
    """
    same = (ours.line == OURS_TRAINED) & (ours.pixels == IMG_SIZE)
    ours = ours[same & ours.draw.isin(runs.draw)]
    recipes, changes = {}, []
    for name, words in CHANGES.items():
        own = runs[runs.line == name]
        beside = ours[ours.keep_rate.isin(own.keep_rate)]
        own = own[own.draw.isin(beside.draw)]
        if len(own):
            row = beside.iloc[0]
            title = RECIPE.format(row.method, row.keep_rate)
            recipes[title] = _row(title, beside)
            found = difference(_by_draw(own), _by_draw(beside))
            changes.append(_row(words, own, found))
    return pd.DataFrame([*recipes.values(), *changes])


def _row(words: str, runs: pd.DataFrame, found=None) -> dict:
    return dict(
        change=words,
        accuracy=runs.accuracy.mean(),
        draws=runs.draw.nunique(),
        gmacs=runs.gmacs.iloc[0],
        seconds=runs.seconds.astype(float).median(),
        difference=found,
    )


def _by_draw(runs: pd.DataFrame) -> pd.Series:
    return runs.set_index('draw').accuracy


def reading(found: Difference | None) -> str:
    """What a difference says, by its interval alone; '' of none."""
    if found is None:
        return ''
    if found.draws < 2:
        return 'one draw only'
    if found.low > 0:
        return 'helps'
    return 'hurts' if found.high < 0 else 'no difference seen'


def table_of_changes(changes: pd.DataFrame) -> str:
    """A row a change, in Markdown.

    Args:
        changes (pandas.DataFrame): Of :func:`to_changes`.
    """
    found = list(changes.difference)
    return grid(
        pd.DataFrame(
            {
                'one change': changes.change,
                'draws': changes.draws,
                'top-1 (%)': changes.accuracy.map(number),
                'to the recipe [95 %]': [
                    '' if row is None else signed(row) for row in found
                ],
                'reading': [reading(row) for row in found],
                'GMACs': changes.gmacs.map('{:.2f}'.format),
                'CPU s to train': changes.seconds.map(number),
            }
        ),
        WORDS,
    )
