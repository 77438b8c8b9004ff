# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Coverage of the confidence interval of ``fit``, and its calibration.

Training and test photos are from the same sessions, from different sessions,
or by different observers.
"""

from itertools import product

import fit_networks
import pandas as pd
import torch
from frozen import DATA, photos
from tables import kept, read_machine
from training_subsets import draw, get_labels

from mmclca.apis.probe import learning_curve
from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.datasets.near_duplicates import find_near_duplicates, join_groups
from mmclca.datasets.photos import LabeledImages
from mmclca.fitting.estimate import extrapolate_interval

STUDY = 'intervals'
COUNTS = 3, 5, 10  # photos per class
NUM_PAIRS = 10  # random training and test sets per dataset
SAME, LATER = 'same session', 'later session'
OTHERS, UNTOLD = 'other observers', 'other observers, without groups'
# datasets by shift from training to test photos (None: all)
SHIFTS = {
    SAME: None,
    OTHERS: ('mushroom10',),
    UNTOLD: ('mushroom10',),
    LATER: ('cotton5', 'mangodis8'),
}
PARTS = ['accuracy', 'test', 'inside', 'width']
PARTS += ['calibrated', 'uncalibrated']


def values():
    """Return the values for the template."""
    rows = kept(STUDY, measure, wanted())
    same = rows[rows['shift'] == SAME]
    return dict(
        facts=read_machine(STUDY),
        shifts=means(rows, ['shift', 'count']),
        sets=means(same, ['set']),
        numbers=means(same, ['network', 'count']),
    )


def means(rows, keys):
    """Return mean values by the columns ``keys``, in the order of shifts."""
    order = dict(shift=pd.Categorical(rows['shift'], [*SHIFTS]))
    result = rows.assign(**order).groupby(keys, observed=True)[PARTS].mean()
    return result.reset_index().to_dict('records')


def wanted():
    """Yield the columns that identify a row, and the arguments to measure."""
    for count, source in product(COUNTS, fit_networks.list_defaults()):
        network = fit_networks.get_name(source[0])
        for shift, names in SHIFTS.items():
            for name in names or enough_photos(count):
                columns = dict(network=network, set=name)
                columns |= dict(shift=shift, count=count)
                yield columns, (source, name, shift, count)


def enough_photos(count):
    """Return the datasets with more test than training photos."""
    result = {
        name: dataset.groupby('label').size().clip(upper=count).sum()
        for name, dataset in photos().items()
    }
    return [x for x in result if len(photos()[x]) > 2 * result[x]]


def measure(network, name, shift, count):
    """Return means over random training and test sets, in percent."""
    dataset = photos()[name]
    probe = fit_networks.build_probe(network)
    read, _ = probe.features([*dataset.path])
    pairs = [pair(name, dataset, shift, count, i) for i in range(NUM_PAIRS)]
    rows = [reported(probe, read, dataset, *split) for split in pairs]
    return [(100 * pd.DataFrame(rows)).mean().round(2).to_dict()]


def pair(name, dataset, shift, count, number):
    """Return the training photos, a mask of the test photos, and the groups
    that ``fit`` knows.

    Photos by half of the observers, of the later session, or else all other
    photos are tested.
    """
    labels, later = get_labels(dataset)
    train_mask = ~later
    units = dataset.path
    if shift in (OTHERS, UNTOLD):
        units = observers(name, dataset)
        half, _ = next(GroupedSplits(labels, units).folds(2, seed=number))
        train_mask = torch.zeros_like(later).index_fill(
            0, torch.tensor(half), True
        )
    elif shift == SAME:
        train_mask = torch.ones_like(later)
    drawn = draw(labels, train_mask, count, number)
    if shift == SAME:
        train_mask = torch.zeros_like(later).index_fill(0, drawn, True)
    groups = [*units.iloc[drawn]] if shift == OTHERS else None
    return drawn, ~train_mask, groups


def observers(name, dataset):
    """Return the observer of each photo."""
    folder = DATA / 'sets' / name
    train_mask = pd.read_csv(folder / 'groups.csv').set_index('file').group
    return dataset.path.str.removeprefix(f'{folder}/').map(train_mask)


def reported(probe, read, dataset, drawn, tested, groups):
    """Return accuracy and interval as ``fit`` reports them, accuracy on the
    test photos, and the calibration errors there."""
    labels, _ = get_labels(dataset)
    classes = [*map(str, range(1 + int(labels.max())))]
    paths, train_mask = [*dataset.path.iloc[drawn]], labels[drawn]
    subset = LabeledImages(paths, train_mask.tolist(), classes, groups, [], '')
    groups = join_groups(subset, find_near_duplicates(subset, read[drawn]))
    result = probe.fit(read[drawn], train_mask, classes, groups)
    curve = learning_curve(result)
    low, high = extrapolate_interval(result, curve)
    scores, names = probe.scores(read[tested]), labels[tested]
    test = (scores.argmax(1) == names).float().mean().item()
    every = dict(calibrated=1, uncalibrated=result.temperature)
    errors = {
        key: calibration_error((x * scores).softmax(1), names)
        for key, x in every.items()
    }
    mean = float(result.accuracy.mean())
    inside = low <= test <= high
    return dict(
        accuracy=mean, test=test, inside=inside, width=high - low, **errors
    )


def calibration_error(probabilities, labels, bins=15):
    """Return the expected calibration error."""
    sure, best = probabilities.max(1)
    gaps = (best == labels).to(sure) - sure
    sums = sure.new_zeros(bins + 1)
    sums.index_add_(0, (bins * sure).ceil().long(), gaps)
    return float(sums.abs().sum()) / len(sure)
