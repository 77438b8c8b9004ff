# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Arms and verdicts as tables in Markdown."""

import pandas as pd

from mmclca.benchmark.few_photographs.arms import SHALLOWER

from ..text_table import DASH, grid
from .compare import Difference, Verdict
from .runs import CLA, CLCA, IMG_SIZE

WORDS = (  # columns that are no numbers
    *('arm', 'with', 'ours with', 'ours'),
    *('best of them', 'as good and faster', 'bar'),
    *('above CLCA', 'above CLA'),
)


def number(value: float, digits: int = 1) -> str:
    """A number, or a dash where there is none."""
    return DASH if value != value else f'{value:.{digits}f}'


def signed(value: Difference) -> str:
    """A difference and its interval, without one of a single draw."""
    if value.low != value.low:
        return f'{value.mean:+.1f}'
    return f'{value.mean:+.1f} [{value.low:+.1f}, {value.high:+.1f}]'


def setting(arm) -> str:
    """What an arm has beside its classifier: tokens, pixels, layers.

    Args:
        arm (NamedTuple): A row of arms.
    """
    words = [f'{arm.method} {arm.keep_rate:g}'] if arm.method else []
    if arm.pixels != IMG_SIZE:
        words.append(f'{arm.pixels} px')
    if arm.line == SHALLOWER:
        words.append(f'{arm.depth} layers')
    return ', '.join(words) or 'all tokens'


def table_of_arms(arms: pd.DataFrame, compared: pd.DataFrame) -> str:
    """A row an arm.

    Args:
        arms (pandas.DataFrame): Those that are shown.
        compared (pandas.DataFrame): All, of
            :func:`mmclca.sweep.few_photographs.to_arms`.
    """
    beside = [setting(compared.loc[arm.beside]) for arm in arms.itertuples()]
    return grid(
        pd.DataFrame(
            {
                'arm': _marked(arms.line, arms.ours),
                'with': [setting(arm) for arm in arms.itertuples()],
                'top-1 (%)': arms.accuracy.map(number),
                'macro recall (%)': arms.macro_recall.map(number),
                'GMACs': arms.gmacs.map('{:.2f}'.format),
                'ms': arms.ms.map(number),
                'CPU s to train': arms.seconds.map(number),
                'to ours [95 %]': [
                    '' if arm.ours else signed(arm.difference)
                    for arm in arms.itertuples()
                ],
                'ours with': [
                    '' if mine else other
                    for mine, other in zip(arms.ours, beside, strict=True)
                ],
            }
        ),
        WORDS,
    )


def _marked(lines: pd.Series, ours: pd.Series) -> list[str]:
    """Ours in bold."""
    pairs = zip(lines, ours, strict=True)
    return [f'**{line}**' if mine else line for line, mine in pairs]


def table_of_verdicts(verdicts: list[Verdict]) -> str:
    """A row for each of ours.

    Args:
        verdicts (list[Verdict]): Of
            :func:`mmclca.sweep.few_photographs.judge`.
    """
    cells = pd.DataFrame([_row(one) for one in verdicts])
    return grid(cells.loc[:, (cells != DASH).any()], WORDS)


def _row(verdict: Verdict) -> dict:
    ours = verdict.ours
    return {
        'ours': f'{ours.line}, {setting(ours)}',
        'GMACs': f'{ours.gmacs:.2f}',
        'arms at no more GMACs': len(verdict.cheaper),
        'best of them': _told(verdict.cheaper),
        'above CLCA': _above(verdict, CLCA),
        'above CLA': _above(verdict, CLA),
        'as good and faster': _told(verdict.ties),
        'bar': 'holds' if verdict.holds else 'fails',
    }


def _told(pairs: list) -> str:
    """The first of some arms, and its difference to ours."""
    if not pairs:
        return DASH
    arm, beside = pairs[0]
    return f'{arm.line}, {setting(arm)}: {signed(beside)}'


def _above(verdict: Verdict, line: str) -> str:
    found = [
        f'{setting(arm)}: {signed(beside)}'
        for arm, beside in verdict.to_beat
        if arm.line == line
    ]
    return '; '.join(found) or DASH


def told_failures(verdict: Verdict) -> list[str]:
    """What the bar does not let pass, a sentence each.

    Args:
        verdict (Verdict): Of one of ours.
    """
    ours = f'ours with {setting(verdict.ours)}'
    above = [
        f'{arm.line}, {setting(arm)}, is above {ours}: {signed(beside)}'
        for arm, beside in verdict.above
    ]
    return above + [
        f'{ours} is not clearly above {arm.line}, {setting(arm)}: '
        f'{signed(beside)}'
        for arm, beside in verdict.not_below
    ]
