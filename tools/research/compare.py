# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Arms beside ours: runs, and paired differences over draws."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from mmengine.config import Config
from scipy.stats import t

GRID = Config.fromfile('configs/sweeps/few_photographs_probes.py')
# what tables call the arms, in their order
LINES = GRID.lines
OUR_PROBE, SHALLOWER = 'our probe', 'our probe, fewer layers'
LAST_LOGISTIC = 'logistic regression, last layer'
OURS_TRAINED = 'our probe, trained on'
CLCA, CLA = 'CLCA, as in the paper', 'CLA alone'
IMG_SIZE = 224
# what makes an arm, but for data set and backbone
ARM = ['line', 'method', 'keep_rate', 'img_size', 'depth']
# costs closer than this share are equal
EQUAL = 0.005
# ours keeps half of the tokens, of images of any size
OUR_METHOD, OUR_KEEP_RATE = 'EViT', 0.5


def to_runs(probes, results, milliseconds):
    """Return one row an arm and draw.

    Args:
        probes (list[dict]): Of :func:`probes.frozen_arms`.
        results (list[dict]): Of a sweep whose variants are ``ARM-dN``.
        milliseconds (dict[str, float]): Of an image, by models.

    Returns:
        pandas.DataFrame: ``ARM``, ``draw``, ``accuracy`` and
        ``macro_recall`` (%; NaN where not told), ``gmacs``, ``ms`` (NaN where
        not measured) and ``seconds`` (of the CPU, to train; of a probe, for
        the features of its images too).
    """
    rows = [row for probe in probes for row in _of_probe(probe, milliseconds)]
    rows += [_of_result(result, milliseconds) for result in results]
    return pd.DataFrame(rows).astype(dict(macro_recall=float, seconds=float))


def _of_probe(probe, milliseconds):
    arm, frozen = probe['arm'], probe['arm']['frozen']
    ms = milliseconds.get(probe['network'], np.nan)
    for draw, seconds in enumerate(probe['fit_seconds']):
        yield dict(
            frozen,
            dataset=probe['dataset'],
            line=arm['line'],
            depth=arm['layers'][-1] + 1,
            gmacs=probe['gmacs'],
            draw=draw,
            accuracy=probe['accuracy'][draw],
            macro_recall=probe['macro_recall'][draw],
            ms=ms,
            seconds=seconds + probe['train_images'] * ms / 1e3,
        )


def _of_result(result, milliseconds):
    cell = result['cell']
    arm, _, draw = cell['variant'].rpartition('-d')
    return dict(
        cell,
        dataset=f'{cell["dataset"]}_white',
        backbone=cell['backbone'].removeprefix('lf-evit_'),
        line=GRID.trained.get(f'{arm}-{cell["clca"]}', arm),
        method=cell['method'] if cell['keep_rate'] < 1 else '',
        img_size=cell['size'],
        depth=0,
        gmacs=result['gmacs'],
        draw=int(draw),
        accuracy=result['accuracy'],
        macro_recall=result['metrics'].get('single-label/recall'),
        ms=milliseconds.get(trained_model(cell), np.nan),
        seconds=result['cpu_seconds'],
    )


def trained_model(cell):
    """Return the name of the model of a trained arm in a table of speeds."""
    arm = cell['variant'].rpartition('-d')[0]
    rate = f'{cell["method"].lower()}-kr{100 * cell["keep_rate"]:g}'
    parts = arm, cell['clca'], cell['backbone'], rate, f'{cell["size"]}px'
    return '_'.join(parts)


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


def difference(one, other):
    """Paired difference of two arms, with its 95 % t interval.

    Args:
        one (pandas.Series): Accuracies by draw.
        other (pandas.Series): Those of the other arm; draws that only one of
            them has are left out.
    """
    paired = (one - other).dropna()
    mean, draws = paired.mean(), len(paired)
    if draws < 2:
        return Difference(mean, np.nan, np.nan, draws)
    half = t.ppf(0.975, draws - 1) * paired.std() / draws**0.5
    return Difference(mean, mean - half, mean + half, draws)


def of_draws(runs, draws):
    """Runs on some draws, of the arms that have all of these."""
    draws = set(draws)
    runs = runs[runs.draw.isin(draws)]
    return runs[runs.groupby(ARM).draw.transform('nunique') == len(draws)]


def to_arms(runs):
    """Return one row an arm, the differences to ours among what it tells.

    Args:
        runs (pandas.DataFrame): Those of a data set and backbone, of
            :func:`to_runs`.

    Returns:
        pandas.DataFrame: ``ARM``, means of ``accuracy`` and
        ``macro_recall``, ``accuracies`` (a series by draw), ``draws`` (how
        many), ``gmacs``, ``ms`` (NaN where not measured), ``seconds``
        (to train: median of the draws), ``ours`` (whether it is),
        ``beside`` (row of ours that it is compared with) and
        ``difference``; in the order of ``LINES``, the dearest first.
    """
    by_draw = runs.pivot_table('accuracy', 'draw', ARM)
    arms = runs.groupby(ARM, as_index=False).agg(
        accuracy=('accuracy', 'mean'),
        macro_recall=('macro_recall', 'mean'),
        draws=('draw', 'nunique'),
        gmacs=('gmacs', 'first'),
        ms=('ms', 'first'),
        seconds=('seconds', 'median'),
    )
    arms['accuracies'] = [by_draw[tuple(row)] for row in arms[ARM].to_numpy()]
    arms['place'] = arms.line.map(LINES.index)
    order, up = ['place', *ARM[1:]], [True, True, False, False, False]
    arms = arms.sort_values(order, ascending=up, ignore_index=True)
    half = (arms.method == OUR_METHOD) & (arms.keep_rate == OUR_KEEP_RATE)
    arms['ours'] = (arms.line == OUR_PROBE) & half
    ours = arms[arms.ours]
    arms['beside'] = [_beside(arm, ours) for arm in arms.itertuples()]
    arms['difference'] = [
        difference(arm.accuracies, ours.accuracies[arm.beside])
        for arm in arms.itertuples()
    ]
    return arms


def _beside(arm, ours):
    """Return the dearest of ours that costs no more, or else the cheapest."""
    affordable = ours[ours.gmacs <= arm.gmacs * (1 + EQUAL)]
    if affordable.empty:
        return ours.gmacs.idxmin()
    return affordable.gmacs.idxmax()
