# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What training on from the probe of fit gains, set by set."""

from copy import deepcopy
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from few_photographs import draws, labels_of
from frozen import FILES, WEIGHTS, kept, photographs

from mmclca.apis import Probe
from mmclca.datasets.photographs import Photographs, check_photographs
from mmclca.fitting.model import make_plan
from mmclca.fitting.probing import fit_classifier, measure, probe_of
from mmclca.fitting.record import FitRecord, ModelFolder
from mmclca.fitting.screen import Log
from mmclca.fitting.training import train, training_config

RESULTS = Path('docs/results/few_photographs_trained')
SHARES = (0.25, 0.5, 0.75, 1.0)  # of what was trained, in the weights
CALL = dict.fromkeys(
    ('photographs', 'budget', 'runtime', 'labels', 'groups', 'pixels')
)


def runs(counts=(3, 1000), rates=(1.0,)):
    """Return what was measured of all sets and weights, with so many
    photographs a class and factors of the learning rate."""
    asked = product(FILES, photographs(), counts, rates)
    return [
        kept(RESULTS / f'{"_".join(map(str, one))}.json', measured, *one)
        for one in asked
    ]


def measured(backbone, name, count, rate):
    """Train on the first draw of a set; gives accuracies in per cent."""
    own = photographs()[name]
    labels, tested = labels_of(own)
    drawn = next(draws(labels, ~tested, count))
    known, test = named(own.iloc[drawn.numpy()]), named(own[tested.numpy()])
    with TemporaryDirectory() as folder, Log() as log:
        call = dict(CALL, weights=str(WEIGHTS / FILES[backbone]))
        call.update(folds=5, class_weights=None)
        checked = check_photographs(known)
        record = FitRecord.of_call(call, checked)
        plan = make_plan(ModelFolder(folder), record, checked, 'cpu')
        probe = probe_of(plan)
        fit_classifier(plan, probe, known)
        start = Path(folder, 'start.pth')
        probe.save(start)
        config = training_config(plan, known, start, Path(folder, 'work'))
        config.optim_wrapper.optimizer.lr *= rate
        path = train(config, None, log, 'Training')
        found = compare(plan, probe, Probe(path, None, 'cpu'), known, test)
    facts = dict(backbone=backbone, set=name, count=count, rate=rate)
    return dict(facts, photographs=len(known), **found)


def named(rows):
    """Return photographs of rows of a table."""
    classes = [f'{label:02}' for label in rows.label]
    found = Photographs.named([*rows.path], classes, 'set')
    found.splits[:] = ['train'] * len(classes)
    return found


def compare(plan, probe, trained, known, test):
    """Measure a probe, what was trained from it, and what lies between."""
    before, scores = measure(probe, test)
    after, more = measure(trained, test)
    labels = torch.tensor(test.labels)
    both = scores.softmax(1) + more.softmax(1)
    found = dict(probe=before['accuracy'], scores=right(both, labels))
    ends = [deepcopy(x.model.state_dict()) for x in (probe, trained)]
    for share in SHARES:
        state = {
            key: torch.lerp(one, ends[1][key], share)
            if one.is_floating_point()
            else one
            for key, one in ends[0].items()
            if key in ends[1]
        }
        trained.model.load_state_dict(state, strict=False)
        found[f'{share}'] = measure(trained, test)[0]['accuracy']
    fit_classifier(plan, trained, known)
    found['refitted'] = measure(trained, test)[0]['accuracy']
    return {key: round(100 * float(value), 2) for key, value in found.items()}


def right(scores, labels):
    """Return the share of photographs that is named right."""
    return float((scores.argmax(1) == labels).float().mean())
