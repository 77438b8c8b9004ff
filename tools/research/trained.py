# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Gain of fine-tuning from the linear probe of ``fit``, by dataset."""

from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pandas as pd
import torch
from few_photos import GRID, labels_of
from frozen import DATA, FILES, WEIGHTS, photos, read_list
from tables import kept, select

import mmclca
from mmclca.apis import Probe
from mmclca.datasets.photos import LabeledImages, check_photos
from mmclca.fitting import plan as plans
from mmclca.fitting.estimate import measure_accuracy
from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.log import Log
from mmclca.fitting.model_config import build_plain_config
from mmclca.fitting.options import FitOptions
from mmclca.fitting.plan import make_plan
from mmclca.fitting.probing import fit_classifier
from mmclca.fitting.record import FitCall, FitRecord
from mmclca.fitting.training import refit_classifier, train, training_config

STUDY = 'few_photos_trained'
WHOLE = 'fine-tuning'
SHARES = (
    0.25,
    0.5,
    0.75,
    1.0,
)  # weight of the fine-tuned model in the interpolation
KEYS = ['backbone', 'set', 'crops']


def values():
    """Return trainings and fits for the template."""
    wanted = [(named_run(*one, 'fit'), one) for one in GRID['trained']]
    rows = kept(STUDY, measured, wanted)
    wanted = [(named_run(*x, 3, WHOLE), x) for x in GRID['fine_tuned']]
    rows = kept(STUDY, fine_tuned, wanted)
    wanted = [(named_run(*x[:2], 3, x[2]), x) for x in GRID['changed']]
    rows = kept(STUDY, changed, wanted)
    rows = rows.groupby(KEYS, as_index=False, sort=False).first()
    wanted = [(dict(count=count), (count,)) for count in GRID['synthetic']]
    synthetic = kept('few_photos_synthetic', fitted, wanted)
    shown = synthetic.to_dict('records')
    return dict(trained=partial(by_folds, rows), synthetic=shown)


def named_run(backbone, name, crops, recipe):
    """Return the columns identifying a training run."""
    return dict(backbone=backbone, set=name, crops=crops, recipe=recipe)


def measured(backbone, name, crops):
    """Fine-tune on all training photos, from a probe with one or three crops;
    return accuracies in percent."""
    zooms = patch.object(plans, 'CROP_ZOOMS', plans.CROP_ZOOMS[: crops - 1])
    with zooms, planned(backbone, name) as (plan, known, test, log):
        probe, found, config = begin(plan, known)
        path = train(config, None, log, 'Training')
        row = compare(plan, probe, path, test)
        anew = refit_classifier(plan, path, known, found.setting)
        row['refitted'] = accuracy(anew, test)
    told = round(100 * float(found.accuracy.mean()), 2)
    return [dict(photos=len(known), folds=told, **row)]


def begin(plan, known):
    """Fit the initial probe; return the probe, its cross-validation results
    and the training config."""
    folder, probe = plan.files.path, plan.probe
    found = fit_classifier(plan, probe, known, plan.views)
    start = Path(folder, 'start.pth')
    probe.save(start)
    config = training_config(plan, known, start, Path(folder, 'work'))
    return probe, found, config


def fine_tuned(backbone, name):
    """Fine-tune the full ViT with a new last layer and the same recipe; return
    the test accuracy."""
    with planned(backbone, name) as (plan, known, test, log):
        folder, weights = plan.files.path, plan.pretrained.source
        config = training_config(plan, known, weights, Path(folder, 'work'))
        plain = build_plain_config(plan.pretrained, 224, len(known.classes))
        plain['head']['loss'] = config.model.head.loss
        config.model = plain
        path = train(config, 'bf16', log, 'Training')
        right = accuracy(Probe(path, None, plan.device), test)
    return [dict(fine_tuned=right)]


def fitted(count):
    """Run ``fit`` with a number of photos per synthetic cultivar; return test
    accuracies in percent, without and with fine-tuning."""
    with TemporaryDirectory() as folder:
        place, found = Path(folder, 'photos'), {}
        link(DATA / 'synthetic_cultivars', place, train=count, test=None)
        options = dict(weights=WEIGHTS / FILES['deit-tiny-p16'])
        options.update(out=Path(folder, 'model'), budget='0.3GMACs')
        for name, flag in (('probe', 'probe_only'), ('fit', 'fine_tune')):
            facts = mmclca.fit(place, **options, **{flag: True}).facts
            found[name] = round(100 * facts['test']['accuracy'], 2)
    folds = round(100 * facts['probe']['accuracy'], 2)
    return [dict(found, folds=folds, final=facts['final'])]


def link(root, place, **splits):
    """Link the first images per class and split into folders."""
    for split, most in splits.items():
        rows = pd.Series(read_list(root / f'{split}.txt'))
        for path in rows.groupby(rows).head(most).index:
            file = place / split / path.removeprefix('images/')
            file.parent.mkdir(parents=True, exist_ok=True)
            file.symlink_to((root / path).resolve())


def changed(backbone, name, change):
    """Fine-tune from a probe with three crops and one changed setting; return
    the ridge regression accuracy on the new features in percent."""
    with planned(backbone, name) as (plan, known, test, log):
        _, found, config = begin(plan, known)
        config.merge_from_dict(GRID['changes'][change])
        path = train(config, 'bf16', log, 'Training')
        right = accuracy(
            refit_classifier(plan, path, known, found.setting), test
        )
    return [{change: right}]


@contextmanager
def planned(backbone, name):
    """Plan a fit to a dataset; yield the plan, training photos, test photos
    and a log."""
    own = photos()[name]
    tested = labels_of(own)[1].numpy()
    known, test = named(own[~tested]), named(own[tested])
    options = FitOptions(weights=WEIGHTS / FILES[backbone], device='cpu')
    with TemporaryDirectory() as folder, Log() as log:
        checked = check_photos(known)
        record = FitRecord.from_call(FitCall(None, options), checked)
        files = FitFolder(folder)
        yield make_plan(files, record, checked, options), known, test, log


def named(rows):
    """Return the photos listed in a table."""
    classes = [f'{label:02}' for label in rows.label]
    found = LabeledImages.from_names([*rows.path], classes, 'set')
    found.splits[:] = ['train'] * len(classes)
    return found


def compare(plan, probe, path, test):
    """Measure a probe, the fine-tuned model, and interpolated weights."""
    labels, trained = torch.tensor(test.labels), Probe(path, None, plan.device)
    scores = [
        measure_accuracy(one, test)[1].softmax(1) for one in (probe, trained)
    ]
    found = dict(probe=accuracy(probe, test))
    found['scores'] = percent(sum(scores).argmax(1) == labels)
    ends = [deepcopy(one.model.state_dict()) for one in (probe, trained)]
    for share in SHARES:
        # a new probe, as probes cache features
        between = Probe(path, None, plan.device)
        between.model.load_state_dict(mixed(*ends, share), strict=False)
        found[f'{share}'] = accuracy(between, test)
    return found


def mixed(one, other, share):
    """Interpolate the weights shared by two networks."""
    return {
        key: torch.lerp(one[key], other[key], share)
        for key in one.keys() & other.keys()
        if one[key].is_floating_point()
    }


def accuracy(probe, test):
    """Return the accuracy of a model in percent."""
    return round(100 * measure_accuracy(probe, test)[0].accuracy, 2)


def percent(flags):
    """Return the percentage of true values."""
    return round(100 * float(flags.float().mean()), 2)


def by_folds(rows, backbone, crops):
    """Return one row per dataset, the lowest cross-validated accuracy
    first."""
    rows = select(rows, dict(backbone=backbone, crops=crops))
    return rows.sort_values('folds').to_dict('records')
