# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What training on from the probe of fit gains, set by set."""

from copy import deepcopy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pandas as pd
import torch
from few_photographs import GRID, labels_of
from frozen import FILES, WEIGHTS, kept, photographs

from mmclca.apis import Probe
from mmclca.datasets.photographs import Photographs, check_photographs
from mmclca.fitting import model
from mmclca.fitting.model import make_plan
from mmclca.fitting.probing import fit_classifier, measure, probe_of
from mmclca.fitting.record import FitRecord, ModelFolder
from mmclca.fitting.screen import Log
from mmclca.fitting.training import train, training_config
from mmclca.sweep.report import markdown

RESULTS = Path('docs/results/few_photographs_trained')
SHARES = (0.25, 0.5, 0.75, 1.0)  # of what was trained, in the weights
TITLES = {
    'folds': 'probe, by folds',
    'probe': 'probe, test',
    'scores': 'both scores summed',
    **{f'{share}': f'{share:.0%} of the way' for share in SHARES[:-1]},
    '1.0': 'trained',
    'refitted': 'trained, ridge on it',
}
CALL = dict.fromkeys(
    ('photographs', 'budget', 'runtime', 'labels', 'groups', 'pixels')
)


def values():
    """Return what the template asks for: a function that makes a table."""
    rows = [
        kept(RESULTS / f'{"_".join(map(str, one))}.json', measured, *one)
        for one in GRID['trained']
    ]
    return dict(trained=partial(table, pd.DataFrame(rows)))


def measured(backbone, name, crops):
    """Train on all that is to be learned from in a set, from a probe of one
    or three crops; gives accuracies in per cent."""
    own = photographs()[name]
    labels, tested = labels_of(own)
    known, test = named(own[~tested.numpy()]), named(own[tested.numpy()])
    zooms = patch.object(model, 'ZOOMS', model.ZOOMS[: crops - 1])
    with TemporaryDirectory() as folder, Log() as log, zooms:
        call = dict(CALL, weights=str(WEIGHTS / FILES[backbone]))
        call.update(folds=5, class_weights=None)
        checked = check_photographs(known)
        record = FitRecord.of_call(call, checked)
        plan = make_plan(ModelFolder(folder), record, checked, 'cpu')
        probe = probe_of(plan)
        found = fit_classifier(plan, probe, known)
        start = Path(folder, 'start.pth')
        probe.save(start)
        config = training_config(plan, known, start, Path(folder, 'work'))
        path = train(config, None, log, 'Training')
        row = compare(plan, probe, Probe(path, None, 'cpu'), known, test)
    told = round(100 * float(found.accuracy.mean()), 2)
    facts = dict(backbone=backbone, set=name, crops=crops)
    return dict(facts, photographs=len(known), folds=told, **row)


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


def table(rows, backbone, crops):
    """Return a row a set, the least that folds name right first."""
    rows = rows[(rows.backbone == backbone) & (rows.crops == crops)]
    rows = rows.sort_values('folds').drop(columns=['backbone', 'crops'])
    shares = rows.columns.drop(['set', 'photographs'])
    rows[shares] = rows[shares].map('{:.1f}'.format)
    return markdown(rows.rename(columns=TITLES), ('set',))
