# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results of probe arms and of trained arms as one table of runs."""

import json
import re
from pathlib import Path

import pandas as pd

from mmclca.benchmark.few_photographs.arms import (
    LAST_LOGISTIC,
    LOGISTIC,
    NCM,
    NEIGHBOUR,
    OUR_PROBE,
    SHALLOWER,
    SMALLER,
)

# what tables call the trained arms, by the word before the draw in a variant
# and by what they have of CLCA
CLCA, CLA = 'CLCA, as in the paper', 'CLA alone'
FINE_TUNING = 'fine-tuning'
OURS_TRAINED = 'our probe, trained on'
OURS_SMALLER = f'{OURS_TRAINED}, smaller image'
TRAINED = {
    ('ours', 'base'): OURS_TRAINED,
    ('small', 'base'): OURS_SMALLER,
    ('paper', 'clca'): CLCA,
    ('paper', 'cla'): CLA,
    ('full', 'base'): FINE_TUNING,
    ('plain', 'base'): FINE_TUNING,
}
# folders of data sets and weights by the names of their pieces, where the
# probe arms call them otherwise
FOLDERS = dict(leaf40='leaf40_white')
WEIGHTS = {'lf-evit_deit-tiny-p16': 'deit-tiny-p16'}
# in the order of tables and of the legend
LINES = (
    *(OUR_PROBE, CLCA, CLA, FINE_TUNING, OURS_TRAINED, OURS_SMALLER),
    *(SMALLER, SHALLOWER),
    *(LOGISTIC, LAST_LOGISTIC, NEIGHBOUR, NCM),
)
VARIANT = re.compile(r'(?P<arm>.+)-d(?P<draw>\d+)')
IMG_SIZE = 224
MACRO_RECALL = 'single-label/recall'
# what makes an arm
ARM = [
    *('dataset', 'backbone', 'line', 'method', 'keep_rate', 'pixels', 'depth')
]


def read_probes(folder: Path) -> list[dict]:
    """Results of :func:`mmclca.benchmark.few_photographs.measure_missing`.

    Args:
        folder (Path): Their folder.
    """
    # a writer that was killed may have left what begins with a dot
    files = sorted(folder.glob('[!.]*.json'))
    return [json.loads(file.read_text()) for file in files]


def is_trained_arm(result: dict) -> bool:
    """Whether a result of a sweep is of an arm: its variant is ``ARM-dN``.

    Args:
        result (dict): Of :func:`mmclca.sweep.results.read_results`.
    """
    return VARIANT.fullmatch(result['cell']['variant']) is not None


def to_runs(probes: list[dict], results: list[dict]) -> pd.DataFrame:
    """One row an arm and draw.

    Args:
        probes (list[dict]): Of :func:`read_probes`.
        results (list[dict]): Trained arms, see :func:`is_trained_arm`.

    Returns:
        pandas.DataFrame: ``ARM``, ``draw``, ``accuracy`` and
        ``macro_recall`` (%; NaN where not told), ``gmacs``, ``model`` (its
        name in a table of speeds), ``seconds`` (of the fit, or of the whole
        training) and ``embedded`` (images whose features come before a fit).
    """
    rows = [row for probe in probes for row in _of_probe(probe)]
    rows += [_of_result(result) for result in results]
    return pd.DataFrame(rows)


def _of_probe(probe: dict) -> list[dict]:
    arm, frozen = probe['arm'], probe['arm']['frozen']
    shared = dict(
        dataset=probe['dataset'],
        backbone=frozen['backbone'],
        line=arm['line'],
        method=frozen['method'],
        keep_rate=frozen['keep_rate'],
        pixels=frozen['img_size'],
        depth=arm['layers'][-1] + 1,
        gmacs=probe['gmacs'],
        model=probe['network'],
        embedded=probe['train_images'],
    )
    measured = zip(
        probe['accuracy'],
        probe['macro_recall'],
        probe['fit_seconds'],
        strict=True,
    )
    return [
        dict(shared, draw=i, accuracy=a, macro_recall=r, seconds=s)
        for i, (a, r, s) in enumerate(measured)
    ]


def _of_result(result: dict) -> dict:
    cell = result['cell']
    arm, draw = VARIANT.fullmatch(cell['variant']).groups()
    reduced = cell['keep_rate'] < 1
    return dict(
        dataset=FOLDERS.get(cell['dataset'], cell['dataset']),
        backbone=WEIGHTS.get(cell['backbone'], cell['backbone']),
        line=TRAINED.get((arm, cell['clca']), arm),
        method=cell['method'] if reduced else '',
        keep_rate=cell['keep_rate'],
        pixels=cell['size'],
        depth=0,
        gmacs=result['gmacs'],
        model=trained_model(cell),
        embedded=0,
        draw=int(draw),
        accuracy=result['accuracy'],
        macro_recall=result['metrics'].get(MACRO_RECALL),
        seconds=result['cpu_seconds'],
    )


def trained_model(cell: dict) -> str:
    """Name of the model of a trained arm in a table of speeds.

    Args:
        cell (dict): Of a result whose variant is ``ARM-dN``.
    """
    arm = VARIANT.fullmatch(cell['variant'])['arm']
    rate = f'{cell["method"].lower()}-kr{100 * cell["keep_rate"]:g}'
    parts = arm, cell['clca'], cell['backbone'], rate, f'{cell["size"]}px'
    return '_'.join(parts)
