# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Arms beside ours: paired differences over draws, and the bar."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from mmclca.benchmark.few_photographs.arms import (
    OUR_KEEP_RATE,
    OUR_METHOD,
    OUR_PROBE,
)

from .runs import ARM, CLA, CLCA, LINES

LEVEL = 0.95
# costs closer than this share are equal
EQUAL = 0.005
IN_ORDER = ['line', 'method', 'keep_rate', 'pixels', 'depth']
# keep rates at which CLCA and CLA are to be below ours
KEEP_RATES_TO_BEAT = (0.1, 0.25)


class Difference(NamedTuple):
    """A mean over draws and its confidence interval.

    Args:
        mean (float): In points.
        low (float): Lower end, NaN of a single draw.
        high (float): Upper end.
        draws (int): How many.
    """

    mean: float
    low: float
    high: float
    draws: int


def difference(one: pd.Series, other: pd.Series) -> Difference:
    """Paired difference of two arms, with its t interval.

    Args:
        one (pandas.Series): Accuracies by draw.
        other (pandas.Series): Those of the other arm; draws that only one of
            them has are left out.
    """
    from scipy.stats import t

    paired = (one - other).dropna()
    mean, draws = paired.mean(), len(paired)
    if draws < 2:
        return Difference(mean, np.nan, np.nan, draws)
    half = t.ppf((1 + LEVEL) / 2, draws - 1) * paired.std() / draws**0.5
    return Difference(mean, mean - half, mean + half, draws)


def of_draws(runs: pd.DataFrame, draws: Iterable[int]) -> pd.DataFrame:
    """Runs on some draws, of the arms that have all of these."""
    draws = set(draws)
    runs = runs[runs.draw.isin(draws)]
    return runs[runs.groupby(ARM).draw.transform('nunique') == len(draws)]


def is_to_beat(table: pd.DataFrame) -> pd.Series:
    """Whether a run or an arm is one that ours is to be above.

    Args:
        table (pandas.DataFrame): Of runs or of arms.
    """
    keep_rates = table.keep_rate.isin(KEEP_RATES_TO_BEAT)
    return table.line.isin([CLCA, CLA]) & keep_rates


def to_arms(runs: pd.DataFrame, speeds: dict[str, float]) -> pd.DataFrame:
    """One row an arm, the differences to ours among what it tells.

    Args:
        runs (pandas.DataFrame): Those of a data set and backbone, of
            :func:`mmclca.sweep.few_photographs.to_runs`.
        speeds (dict[str, float]): Milliseconds of the models by name.

    Returns:
        pandas.DataFrame: ``ARM``, means of ``accuracy`` and
        ``macro_recall``, ``accuracies`` (a series by draw), ``draws`` (how
        many), ``gmacs``, ``ms`` (NaN where not measured), ``seconds``
        (to train: median of the draws), ``ours`` (whether it is),
        ``beside`` (row of ours that it is compared with) and
        ``difference``; in the order of ``LINES``, the dearest first.
    """
    arms = pd.DataFrame(
        _arm(names, own, speeds) for names, own in runs.groupby(ARM)
    )
    arms = arms.sort_values(IN_ORDER, key=_rank, ignore_index=True)
    arms['ours'] = _is_ours(arms)
    ours = arms[arms.ours]
    arms['beside'] = [_beside(arm, ours) for arm in arms.itertuples()]
    arms['difference'] = [
        difference(arm.accuracies, ours.accuracies[arm.beside])
        for arm in arms.itertuples()
    ]
    return arms


def _rank(column: pd.Series) -> pd.Series:
    """Numbers that ascend in the order of the table."""
    if column.name == 'line':
        places = {line: i for i, line in enumerate(LINES)}
        return column.map(places).fillna(len(places))
    return column if column.name == 'method' else -column


def _arm(names: tuple, runs: pd.DataFrame, speeds: dict[str, float]) -> dict:
    ms = speeds.get(runs.model.iloc[0], np.nan)
    embedding = runs.embedded.iloc[0] * ms / 1e3 if runs.embedded.any() else 0
    return dict(
        zip(ARM, names, strict=True),
        accuracy=runs.accuracy.mean(),
        macro_recall=runs.macro_recall.astype(float).mean(),
        accuracies=runs.groupby('draw').accuracy.mean(),
        draws=runs.draw.nunique(),
        gmacs=runs.gmacs.iloc[0],
        ms=ms,
        seconds=runs.seconds.astype(float).median() + embedding,
    )


def _is_ours(arms: pd.DataFrame) -> pd.Series:
    """Our probe with half of the tokens, on images of any size."""
    method = arms.method == OUR_METHOD
    keep_rate = arms.keep_rate == OUR_KEEP_RATE
    return (arms.line == OUR_PROBE) & method & keep_rate


def _beside(arm, ours: pd.DataFrame) -> int:
    """The dearest of ours that costs no more, or else the cheapest."""
    affordable = ours[ours.gmacs <= arm.gmacs * (1 + EQUAL)]
    if affordable.empty:
        return ours.gmacs.idxmin()
    return affordable.gmacs.idxmax()


class Verdict(NamedTuple):
    """What the bar says of ours at a cost.

    Args:
        ours (NamedTuple): The row of ours.
        cheaper (list[tuple[NamedTuple, Difference]]): Arms at equal or lower
            multiply-accumulates and their differences to ours, the highest
            first.
        to_beat (list[tuple[NamedTuple, Difference]]): CLCA and CLA at
            ``KEEP_RATES_TO_BEAT`` that are compared with it, and what ours
            is above them.
    """

    ours: NamedTuple
    cheaper: list
    to_beat: list

    @property
    def above(self) -> list:
        """Those above ours with their whole interval: there must be none."""
        return [pair for pair in self.cheaper if pair[1].low > 0]

    @property
    def not_below(self) -> list:
        """CLCA or CLA that ours is not above with its whole interval."""
        return [pair for pair in self.to_beat if not pair[1].low > 0]

    @property
    def holds(self) -> bool:
        """Whether ours passes."""
        return not (self.above or self.not_below)

    @property
    def ties(self) -> list:
        """Those that are not below ours with their whole interval, but
        faster; the fastest first."""
        tied = [
            pair
            for pair in self.cheaper
            if pair[1].high >= 0 and pair[0].ms < self.ours.ms
        ]
        return sorted(tied, key=lambda pair: pair[0].ms)


def judge(arms: pd.DataFrame) -> list[Verdict]:
    """Compare ours with all that costs no more, and with what it must beat.

    Args:
        arms (pandas.DataFrame): Of :func:`to_arms`.

    Returns:
        list[Verdict]: One for each of ours, the dearest first.
    """
    ours = arms[arms.ours].sort_values('gmacs', ascending=False)
    return [_verdict(own, arms) for own in ours.itertuples()]


def _verdict(ours, arms: pd.DataFrame) -> Verdict:
    others = arms[~arms.ours]
    cheaper = others[others.gmacs <= ours.gmacs * (1 + EQUAL)]
    to_beat = others[is_to_beat(others) & (others.beside == ours.Index)]
    pairs = [
        (arm, difference(arm.accuracies, ours.accuracies))
        for arm in cheaper.itertuples()
    ]
    return Verdict(
        ours,
        sorted(pairs, key=lambda pair: -pair[1].mean),
        [
            (arm, difference(ours.accuracies, arm.accuracies))
            for arm in to_beat.itertuples()
        ],
    )
