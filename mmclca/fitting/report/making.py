# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How a model was made, and what to do with it."""

from collections.abc import Iterator

from .folder import Facts
from .formats import digits, duration, plural

CLASSIFIERS = dict(
    ridge='ridge regression',
    lda='linear discriminant analysis with shrinkage',
    logistic='logistic regression',
    ncm='nearest class mean',
    knn='nearest neighbours',
)
SCORES = dict(max_softmax='the highest probability', energy='the energy score')
COMMANDS = (
    ('Name new photographs:', 'predict {folder} new_photos/'),
    ('Name them in a browser, by dropping them:', 'page {folder}'),
    (
        'Add a class, in seconds, from a folder with its photographs:',
        'add-class {folder} photos_of_it/',
    ),
    ('Write a file for ONNX Runtime, without PyTorch:', 'export {folder}'),
)


def commands(folder: str) -> list[tuple[str, str]]:
    """What to type next, each with what it is for.

    Args:
        folder (str): The folder of the model, as a shell takes it.
    """
    return [
        (title, f'python -m mmclca {command.format(folder=folder)}')
        for title, command in COMMANDS
    ]


def making(facts: Facts) -> list[tuple[str, str]]:
    """How a model was made, as titles and values.

    Args:
        facts (Facts): Of ``fit.json``; what is null there is left out.
    """
    parts = (_network, _classifier, _training, _threshold, _run)
    return [entry for part in parts for entry in part(facts)]


def _network(facts: Facts) -> Iterator[tuple[str, str]]:
    weights, model = facts['weights'], facts['model']
    if weights['name']:
        source = weights['source']
        yield 'Weights', weights['name'] + (f', {source}' if source else '')
    if model['method']:
        rate = model['keep_rate']
        share = '' if rate is None else f', keep rate {rate:g}'
        yield 'Token reduction', model['method'] + share
    if model['img_size']:
        yield 'Image size', f'{model["img_size"]} px'
    if model['layers']:
        layers = ', '.join(map(str, model['layers']))
        depth = model['depth']
        of = f' of {plural(depth, "layer")}' if depth else ''
        yield 'Layers read', f'{layers}{of}'
    if facts['cost']['params']:
        millions = digits(facts['cost']['params'] / 1e6, 2)
        yield 'Parameters', f'{millions} million'


def _classifier(facts: Facts) -> Iterator[tuple[str, str]]:
    probe = facts['probe']
    name = probe['classifier']
    if name:
        strength = probe['strength']
        how = '' if strength is None else f', strength {strength:g}'
        yield 'Classifier', CLASSIFIERS.get(name, name) + how
    if probe['seconds']:
        yield 'Fitted and tested in', duration(probe['seconds'])


def _training(facts: Facts) -> Iterator[tuple[str, str]]:
    training = facts['training']
    if training:
        done = [plural(training['epochs'], 'epoch')]
        if training['seconds']:
            done.append(duration(training['seconds']))
        done.extend(filter(None, [training['reason']]))
        yield 'Training', ', '.join(done)
    if facts['final'] == 'probe':
        yield 'Final model', 'the classifier on the network as it came'
    if facts['final'] == 'trained':
        yield 'Final model', 'the trained one, from all photographs'


def _threshold(facts: Facts) -> Iterator[tuple[str, str]]:
    threshold = facts['threshold']
    score = threshold['score']
    if score:
        limit = f'{threshold["threshold"]:.3g}'
        said = f'{SCORES[score]} is below {limit} (threshold.json)'
        yield 'None of these classes', f'if {said}'


def _run(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts['seconds']:
        yield 'All of it took', duration(facts['seconds'])
    if facts['versions']:
        pairs = facts['versions'].items()
        listed = (f'{name} {number}' for name, number in pairs)
        yield 'Versions', ', '.join(listed)
    if facts['date']:
        yield 'Date', facts['date'][:10]
