# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Coverage of the confidence interval of ``fit`` on several datasets."""

from few_photographs import GRID, draws, labels_of, read_of
from frozen import Frozen, photographs
from tables import kept

from mmclca.apis.probe import fit_linear, learning_curve, out_of_fold
from mmclca.fitting.probing import interval_of

# datasets with test photos from other days than the training photos
OTHER_DAYS = ('cotton5', 'mangodis8')
# calibration error columns
CALIBRATIONS = ['temperature by folds', 'without']
WHERE = ['default', 'count']


def values():
    """Return the values for the template."""
    rows = kept('few_photographs_told', measure, [({}, ())])
    rows['inside'] = 100 * rows.true.between(rows.low, rows.high)
    same_days = rows[~rows.set.isin(OTHER_DAYS)]
    shares = dict(inside=rows.inside.mean(), same_days=same_days.inside.mean())
    return dict(told=dict(shares, rows=means(rows)))


def measure():
    """Measure reported accuracy, interval and test accuracy per training
    subset, for both defaults of ``fit``."""
    return [
        dict(default=title, set=name, count=count, **found)
        for title, settings in GRID['defaults'].items()
        for name, own in photographs().items()
        for count in GRID['counts'][1:]
        for found in measured(name, own, count, **settings)
    ]


def measured(name, own, count, reading, **settings):
    """Yield reported accuracy and test accuracy per training subset."""
    read = read_of(Frozen(**settings).views(name), reading).transpose(0, 1)
    labels, tested = labels_of(own)
    for drawn in draws(labels, ~tested, count):
        given = read[drawn], labels[drawn], 1 + int(labels.max())
        found = out_of_fold(*given)
        low, high = interval_of(found, learning_curve(found, read[drawn]))
        fitted = fit_linear(*given, 'ridge', found.setting.strength)
        scores, names = fitted.scores(read[tested, 0]), labels[tested]
        true = (scores.argmax(1) == names).float().mean()
        shares = dict(accuracy=found.accuracy.mean(), low=low, high=high)
        every = scores / found.temperature, scores
        errors = [calibration_error(x.softmax(1), names) for x in every]
        shares |= dict(
            true=true, **dict(zip(CALIBRATIONS, errors, strict=True))
        )
        yield {k: round(float(x), 4) for k, x in shares.items()}


def calibration_error(probabilities, labels, bins=15):
    """Return the expected calibration error in points."""
    sure, best = probabilities.max(1)
    gaps = (best == labels).to(sure) - sure
    sums = sure.new_zeros(bins + 1)
    sums.index_add_(0, (bins * sure).ceil().long(), gaps)
    return 100 * sums.abs().sum() / len(sure)


def means(rows):
    """Return one row per default and number of photos per class: means over
    datasets and draws of the share of intervals that hold, of their width in
    points and of the calibration errors."""
    rows = rows.assign(width=100 * (rows.high - rows.low))
    found = rows.groupby(WHERE)[['inside', 'width', *CALIBRATIONS]].mean()
    return found.reset_index().to_dict('records')
