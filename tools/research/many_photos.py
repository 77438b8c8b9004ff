# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Savings when ``fit`` cross-validates thousands of photos.

``python tools/research/many_photos.py`` pools all datasets. It prints accuracy
and settings without savings, and with the savings for more photos.
"""

import time
from contextlib import ExitStack
from unittest.mock import patch

import fit_networks
import pandas as pd
import torch
from frozen import photos

from mmclca import cli
from mmclca.apis.probe import (
    LabeledFeatures,
    classifiers,
    folds,
    leave_out,
    out_of_fold,
)
from mmclca.models.heads import get_feature_subsets

ALWAYS, NEVER = 0, 10**9
# thresholds in numbers of photos or rows, by module and name
REPEATED, NESTED = (folds, 'MAX_REPEATED'), (folds, 'MAX_NESTED')
DOUBLE = ((classifiers, 'MAX_DOUBLE_ROWS'), (leave_out, 'MAX_DOUBLE_ROWS'))
RESIDUAL = leave_out, 'MAX_RESIDUAL_ROWS'
EXACT = dict.fromkeys((REPEATED, NESTED, *DOUBLE), NEVER)
VARIANTS = {
    'five repeats, nested, float64': EXACT,
    'float32 (above 5,000 rows)': EXACT | dict.fromkeys(DOUBLE, ALWAYS),
    'inner products (above 10,000 rows)': EXACT
    | dict.fromkeys((*DOUBLE, RESIDUAL), ALWAYS)
    | {REPEATED: ALWAYS, NESTED: ALWAYS},
    'one repeat (above 2,000 photos)': EXACT | {REPEATED: ALWAYS},
    'one repeat, not nested (above 10,000)': EXACT
    | {REPEATED: ALWAYS, NESTED: ALWAYS},
}


def main():
    """Print one row per variant."""
    cli.Parser(__doc__).parse_args()
    torch.set_num_threads(1)
    data = pool_datasets()
    print(f'{len(data.labels)} photos, {data.num_classes} classes')
    rows = [measure(data, name) for name in VARIANTS]
    print(pd.DataFrame(rows).round(4).to_string(index=False))


def pool_datasets():
    """Return the features of all photos by a default network."""
    network, *_ = fit_networks.list_defaults()
    probe = fit_networks.build_probe(network)
    features, labels, number = [], [], 0
    for dataset in photos().values():
        features.append(probe.features([*dataset.path])[0])
        positions = dataset.label.astype('category').cat.codes
        labels.append(torch.tensor(positions.to_numpy(int)) + number)
        number = int(labels[-1].max()) + 1
    subsets = get_feature_subsets(probe.model.head)
    return LabeledFeatures(
        torch.cat(features), torch.cat(labels), number, feature_subsets=subsets
    )


def measure(data, name):
    """Cross-validate with a key in ``VARIANTS``; return a row."""
    with ExitStack() as stack:
        for (module, threshold), number in VARIANTS[name].items():
            stack.enter_context(patch.object(module, threshold, number))
        start = time.perf_counter()
        cross_validated = out_of_fold(data)
    accuracy = 100 * cross_validated.accuracy
    return dict(
        variant=name,
        accuracy=float(accuracy.mean()),
        deviation=float(accuracy.std()) if len(accuracy) > 1 else torch.nan,
        temperature=cross_validated.temperature,
        alpha=cross_validated.setting.alpha,
        late=cross_validated.setting.late_cls_weight,
        seconds=time.perf_counter() - start,
    )


if __name__ == '__main__':
    cli.run(main)
