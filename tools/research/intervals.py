# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Coverage of the confidence interval of ``fit``, and its calibration.

Training and test photos are from the same sessions, from different sessions,
or by different observers.
"""

from itertools import product

import frontier
import pandas as pd
import torch
from few_photos import GRID, draw, labels_of
from frozen import DATA, photos
from tables import kept, machine_of

from mmclca.apis.probe import learning_curve
from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.datasets.photos import (
    LabeledImages,
    find_near_duplicates,
    join_groups,
)
from mmclca.fitting.estimate import estimate_interval

STUDY = 'intervals'
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
        facts=machine_of(STUDY),
        shifts=means(rows, ['shift', 'count']),
        sets=means(same, ['set']),
        numbers=means(same, ['network', 'count']),
    )


def means(rows, keys):
    """Return mean values by the columns ``keys``, in the order of shifts."""
    order = dict(shift=pd.Categorical(rows['shift'], [*SHIFTS]))
    found = rows.assign(**order).groupby(keys, observed=True)[PARTS].mean()
    return found.reset_index().to_dict('records')


def wanted():
    """Yield the columns that identify a row, and the arguments to measure."""
    for count, one in product(GRID['counts'][1:], frontier.networks()):
        if frontier.is_default(*one):
            network = frontier.facts_of(*one)['network']
            for shift, names in SHIFTS.items():
                for name in names or enough_photos(count):
                    facts = dict(network=network, set=name)
                    facts |= dict(shift=shift, count=count)
                    yield facts, (one, name, shift, count)


def enough_photos(count):
    """Return the datasets with more test than training photos."""
    found = {
        name: own.groupby('label').size().clip(upper=count).sum()
        for name, own in photos().items()
    }
    return [x for x in found if len(photos()[x]) > 2 * found[x]]


def measure(network, name, shift, count):
    """Return means over random training and test sets, in percent."""
    own = photos()[name]
    probe = frontier.probe_of(*network)
    read, _ = probe.features([*own.path])
    pairs = [pair(name, own, shift, count, i) for i in range(NUM_PAIRS)]
    rows = [reported(probe, read, own, *one) for one in pairs]
    return [(100 * pd.DataFrame(rows)).mean().round(2).to_dict()]


def pair(name, own, shift, count, number):
    """Return the training photos, a mask of the test photos, and the groups
    that ``fit`` knows.

    Photos by half of the observers, of the later session, or else all other
    photos are tested.
    """
    labels, later = labels_of(own)
    known = ~later
    units = own.path
    if shift in (OTHERS, UNTOLD):
        units = observers(name, own)
        half, _ = next(GroupedSplits(labels, units).folds(2, seed=number))
        known = torch.zeros_like(later).index_fill(0, torch.tensor(half), True)
    elif shift == SAME:
        known = torch.ones_like(later)
    drawn = draw(labels, known, count, number)
    if shift == SAME:
        known = torch.zeros_like(later).index_fill(0, drawn, True)
    groups = [*units.iloc[drawn]] if shift == OTHERS else None
    return drawn, ~known, groups


def observers(name, own):
    """Return the observer of each photo."""
    folder = DATA / 'sets' / name
    known = pd.read_csv(folder / 'groups.csv').set_index('file').group
    return own.path.str.removeprefix(f'{folder}/').map(known)


def reported(probe, read, own, drawn, tested, groups):
    """Return accuracy and interval as ``fit`` reports them, accuracy on the
    test photos, and the calibration errors there."""
    labels, _ = labels_of(own)
    classes = [*map(str, range(1 + int(labels.max())))]
    paths, known = [*own.path.iloc[drawn]], labels[drawn]
    some = LabeledImages(paths, known.tolist(), classes, groups, [], '')
    groups = join_groups(some, find_near_duplicates(some, read[drawn]))
    found = probe.fit(read[drawn], known, classes, groups=groups)
    curve = learning_curve(found, read[drawn], groups=groups)
    low, high = estimate_interval(found, curve)
    scores, names = probe.scores(read[tested]), labels[tested]
    test = (scores.argmax(1) == names).float().mean().item()
    every = dict(calibrated=1, uncalibrated=found.temperature)
    errors = {
        key: calibration_error((x * scores).softmax(1), names)
        for key, x in every.items()
    }
    mean = float(found.accuracy.mean())
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
