# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parts of the report: caveats, accuracy by class, and the making."""

from collections.abc import Iterator

from ..record import FitRecord
from .folder import FitFolder
from .formats import digits, duration, percent, plural

FEW = 30  # photographs, below which any accuracy is rough
WIDE = 0.15  # from one end of an interval to the other
MOST = 50  # classes of a table


def caveats(fit: FitFolder) -> Iterator[str]:
    """What a reader should know of how sure the figures are."""
    probe, tested = fit.record.probe, len(fit.tested)
    low, high = probe['low'], probe['high']
    if tested and (tested < FEW or high - low > WIDE):
        yield (
            f'Only {plural(tested, "photograph")} could be tested, so the '
            f'accuracy is a rough one: anything from {percent(low)} '
            f'to {percent(high)} fits what was seen.'
        )
    classes = probe['per_class'].values()
    single = sum(found['recall'] is None for found in classes)
    if single and tested:
        one = ' or one plant' * fit.grouped
        yield (
            f'{plural(single, "class has", "classes have")} only one '
            f'photograph{one}. The model learns from it, but nothing is left '
            'to test with: the accuracy says nothing about such a class. A '
            'second photograph changes that.'
        )
    if fit.record.is_uneven:
        yield _uneven(fit.record)
    if not fit.grouped:
        yield (
            'Each photograph was taken to be of a plant of its own. If some '
            'show the same plant or leaf, the accuracy for new plants is '
            'lower than it says here: fit again with --groups, which keeps '
            'the photographs of one plant together.'
        )


def _uneven(record: FitRecord) -> str:
    counts, mean = record.counts.values(), record.probe['macro_recall']
    known = f'The mean over classes is {percent(mean)}. ' if mean else ''
    return (
        f'Classes differ in size: the largest has {max(counts)} photographs, '
        f'the smallest {min(counts)}. The accuracy mostly tells of the large '
        f'ones. {known}With --class-weights balanced every class counts alike.'
    )


def class_tables(per_class: dict[str, dict]) -> dict:
    """Classes in the order of their recall.

    ``tables``, titles and rows from the worst class to the best: all, or the
    ends of a long list; ``unlisted``, how many classes are between these;
    ``unmeasured``, names of others.
    """
    rows = [
        dict(found, name=name)
        for name, found in per_class.items()
        if found['recall'] is not None
    ]
    rows.sort(key=lambda row: (row['recall'], row['high'], row['name']))
    tables, unlisted = [('All classes', rows)], max(len(rows) - 2 * MOST, 0)
    if unlisted:
        tables = [
            (f'The {MOST} worst classes', rows[:MOST]),
            (f'The {MOST} best classes', rows[-MOST:]),
        ]
    unmeasured = [x for x in per_class if per_class[x]['recall'] is None]
    return dict(tables=tables, unlisted=unlisted, unmeasured=unmeasured)


def making(record: FitRecord) -> Iterator[tuple[str, str]]:
    """How a model was made, as titles and values."""
    weights, model, probe = record.weights, record.model, record.probe
    yield 'Weights', f'{weights["name"]}, {weights["source"]}'
    if model['method']:
        reduction = f'{model["method"]}, keep rate {model["keep_rate"]:g}'
        yield 'Token reduction', reduction
    yield 'Image size', f'{model["img_size"]} px'
    if model['layers']:
        layers = ', '.join(map(str, model['layers']))
        yield 'Layers read', f'{layers} of {plural(model["depth"], "layer")}'
    yield 'Parameters', f'{digits(record.cost["params"] / 1e6, 2)} million'
    yield 'Classifier', f'ridge regression, strength {probe["strength"]:g}'
    yield 'Fitted and tested in', duration(probe['seconds'])
    yield from _training(record)
    if record.threshold and record.threshold['score']:
        limit = f'{record.threshold["threshold"]:.3g}'
        text = f'if the highest probability is below {limit} (threshold.json)'
        yield 'None of these classes', text
    yield 'All of it took', duration(record.seconds)
    listed = (f'{name} {number}' for name, number in record.versions.items())
    yield 'Versions', ', '.join(listed)
    yield 'Date', record.date[:10]


def _training(record: FitRecord) -> Iterator[tuple[str, str]]:
    training, final = (
        record.training,
        'the classifier on the network as it came',
    )
    if training:
        epochs = plural(training['epochs'], 'epoch')
        seconds = duration(training['seconds'])
        yield 'Training', f'{epochs}, {seconds}, {training["reason"]}'
    if record.final == 'trained':
        final = 'the trained one, from all photographs'
    yield 'Final model', final
