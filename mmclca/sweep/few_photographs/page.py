# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The page of results, written from a template and from results alone."""

from collections.abc import Container
from functools import partial
from pathlib import Path
from typing import NamedTuple

import matplotlib
import pandas as pd

from mmclca.benchmark.few_photographs.draws import NUM_DRAWS
from mmclca.utils.atomic_write import replace_file, replace_text

from ..figures.style import STYLE
from ..template import render
from .compare import difference, is_to_beat, judge, of_draws, to_arms
from .picture import draw_arms
from .runs import ARM
from .tables import signed, table_of_arms, table_of_verdicts, told_failures

# the kinds of comparisons: of all arms on the draws that CLCA and CLA were
# trained on, of the probe arms on all draws
TRAINED, FROZEN = 'trained', 'frozen'
NAMES = {'deit-tiny-p16': 'DeiT-Tiny', 'vit-tiny-p16': 'ViT-Tiny'}
Key = tuple[str, str, str]


def compared(
    runs: pd.DataFrame, speeds: dict[str, float]
) -> dict[Key, pd.DataFrame]:
    """Arms of each data set and backbone, on the draws that all have.

    Args:
        runs (pandas.DataFrame): Of
            :func:`mmclca.sweep.few_photographs.to_runs`.
        speeds (dict[str, float]): Milliseconds of the models by name.

    Returns:
        dict[Key, pandas.DataFrame]: Arms by data set, backbone and kind;
        none of kind ``TRAINED`` where neither CLCA nor CLA was trained.
    """
    found = {}
    for (dataset, backbone), own in runs.groupby(['dataset', 'backbone']):
        kinds = {TRAINED: _trained_draws(own), FROZEN: range(NUM_DRAWS)}
        for kind, draws in kinds.items():
            if len(of := of_draws(own, draws)):
                found[dataset, backbone, kind] = to_arms(of, speeds)
    return found


def _trained_draws(runs: pd.DataFrame) -> set[int]:
    """Draws on which all that ours is to beat was trained."""
    to_beat = runs[is_to_beat(runs)]
    draws = [set(own) for _, own in to_beat.groupby(ARM).draw]
    return set.intersection(*draws) if draws else set()


class Page:
    """What a template asks for; ``key`` is that of a comparison.

    Args:
        arms (dict[Key, pandas.DataFrame]): Of :func:`compared`.
    """

    def __init__(self, arms: dict[Key, pd.DataFrame]):
        self.arms = arms

    def table(self, *key: str, lines: Container[str] | None = None) -> str:
        """The arms of a comparison, or those of some lines of it."""
        arms = self.arms[key]
        shown = arms if lines is None else arms[arms.line.isin(lines)]
        return table_of_arms(shown, arms)

    def draws(self, *key: str) -> int:
        """How many draws a comparison is on."""
        return int(self.arms[key].draws.max())

    def bar(self, *key: str) -> str:
        """What the bar says of ours at each cost."""
        return table_of_verdicts(judge(self.arms[key]))

    def failures(self, *key: str) -> list[str]:
        """What the bar does not let pass, a sentence each."""
        return [
            line
            for verdict in judge(self.arms[key])
            for line in told_failures(verdict)
        ]

    def arm(self, *key: str, **values) -> NamedTuple:
        """The arm of a comparison that has some values, such as ``line``.

        Raises:
            ValueError: If not one arm has them.
        """
        arms = self.arms[key]
        for name, value in values.items():
            arms = arms[arms[name] == value]
        if len(arms) != 1:
            raise ValueError(f'{len(arms)} arms of {key} have {values}')
        return next(arms.itertuples())

    def versus(self, *key: str, one: dict, other: dict) -> str:
        """What an arm is above another one, with the interval, in points."""
        first, second = self.arm(*key, **one), self.arm(*key, **other)
        return signed(difference(first.accuracies, second.accuracies))


def write_page(
    template: Path,
    page: Path,
    picture: Path,
    arms: dict[Key, pd.DataFrame],
    facts: dict[str, str],
    changes: str = '',
) -> None:
    """Write the page and its picture.

    Args:
        template (Path): Of jinja; is given a :class:`Page` as ``page``,
            ``facts``, ``changes`` and ``kinds``, the keys of the comparisons.
        page (Path): To write.
        picture (Path): To write.
        arms (dict[Key, pandas.DataFrame]): Of :func:`compared`.
        facts (dict[str, str]): Where and with what was measured.
        changes (str): Table of changes to our recipe. Defaults to '', none.
    """
    text = render(
        template,
        page=Page(arms),
        kinds=list(arms),
        facts=facts,
        changes=changes,
    )
    replace_text(page, text)
    with matplotlib.rc_context(STYLE):
        figure = draw_arms(panels(arms))
        replace_file(picture, partial(figure.savefig, dpi=200))


def panels(arms: dict[Key, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """What the picture shows: each backbone, trained arms where there are.

    Args:
        arms (dict[Key, pandas.DataFrame]): Of :func:`compared`.
    """
    first = next(dataset for dataset, *_ in sorted(arms, reverse=True))
    shown = {}
    for backbone, name in NAMES.items():
        for kind in (FROZEN, TRAINED):  # the latter replaces the former
            if (first, backbone, kind) in arms:
                own = arms[first, backbone, kind]
                n = int(own.draws.max())
                shown[name] = f'{name}, {n} draw{"s" * (n > 1)}', own
    return dict(shown.values())
