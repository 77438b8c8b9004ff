# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How far what fit tells of its accuracy can be trusted, on several sets."""

import pandas as pd
from few_photographs import GRID, RESULTS, draws, labels_of, read_of
from frozen import Frozen, kept, photographs

from mmclca.apis.probe import fit_linear, learning_curve, out_of_fold
from mmclca.fitting.probing import interval_of
from mmclca.sweep.report import markdown

# whose test photographs are of other days than those to learn from
OTHER_DAYS = ('cotton5', 'mangodis8')
# calibration errors, by the temperature of the scores
KINDS = ['temperature by folds', 'without']
WHERE = 'default', 'count'


def values():
    """Return what the template asks for."""
    rows = pd.DataFrame(kept(RESULTS / 'told.json', measure))
    rows['inside'] = 100 * rows.true.between(rows.low, rows.high)
    alike = rows[~rows.set.isin(OTHER_DAYS)]
    shares = dict(inside=rows.inside.mean(), alike=alike.inside.mean())
    errors = rows.groupby(['default', 'count'])[KINDS].mean()
    shown = errors.map('{:.1f}'.format).reset_index()
    tables = dict(table=table(rows), calibration=markdown(shown, WHERE))
    return dict(told=shares | tables)


def measure():
    """Measure the accuracy that fit tells of its defaults, the interval, and
    the accuracy of test photographs, by draw."""
    return [
        dict(default=title, set=name, count=count, **found)
        for title, settings in GRID['defaults'].items()
        for name, own in photographs().items()
        for count in GRID['counts'][1:]
        for found in told(name, own, count, **settings)
    ]


def told(name, own, count, reading, **settings):
    """Yield what fit tells of draws of a set."""
    read = read_of(Frozen(**settings).views(name), reading).transpose(0, 1)
    labels, tested = labels_of(own)
    for drawn in draws(labels, ~tested, count):
        given = read[drawn], labels[drawn], 1 + int(labels.max())
        found = out_of_fold(*given)
        low, high = interval_of(found, learning_curve(found, read[drawn]))
        fitted = fit_linear(*given, 'ridge', found.strength)
        scores, names = fitted.scores(read[tested, 0]), labels[tested]
        true = (scores.argmax(1) == names).float().mean()
        shares = dict(accuracy=found.accuracy.mean(), low=low, high=high)
        every = scores / found.temperature, scores
        errors = [calibration_error(x.softmax(1), names) for x in every]
        shares |= dict(true=true, **dict(zip(KINDS, errors, strict=True)))
        yield {k: round(float(x), 4) for k, x in shares.items()}


def calibration_error(probabilities, labels, bins=15):
    """Return the expected calibration error in points."""
    sure, best = probabilities.max(1)
    gaps = (best == labels).to(sure) - sure
    sums = sure.new_zeros(bins + 1)
    sums.index_add_(0, (bins * sure).ceil().long(), gaps)
    return 100 * sums.abs().sum() / len(sure)


def table(rows):
    """Return a row a default and number of photographs a class: the share of
    draws whose accuracy is in the interval, by set, in per cent."""
    found = rows.pivot_table('inside', WHERE, 'set')
    found.insert(0, 'mean', found.mean(1))
    shown = found.map('{:.0f}'.format)
    width = (
        100 * (rows.high - rows.low).groupby([rows[x] for x in WHERE]).mean()
    )
    shown.insert(1, 'width of the interval', width.map('{:.0f}'.format))
    return markdown(shown.reset_index(), WHERE)
