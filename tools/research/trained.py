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
from frozen import DATA, FILES, WEIGHTS, photos, read_list
from mmengine.config import Config
from tables import kept, select
from training_subsets import get_labels

import mmclca
from mmclca.apis import Probe
from mmclca.datasets.photos import LabeledImages, check_photos
from mmclca.fitting import plan as plans
from mmclca.fitting.estimate import measure_accuracy
from mmclca.fitting.fine_tuning import refit_classifier, train, training_config
from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.log import Log
from mmclca.fitting.model_config import build_plain_config
from mmclca.fitting.options import FitOptions
from mmclca.fitting.plan import make_plan
from mmclca.fitting.probing import fit_classifier
from mmclca.fitting.record import FitCall, FitRecord

GRID = Config.fromfile('configs/sweeps/fine_tuning.py').to_dict()
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
    wanted = [
        (named_run(*first_model, 'fit'), first_model)
        for first_model in GRID['trained']
    ]
    rows = kept(STUDY, measured, wanted)
    wanted = [(named_run(*x, 3, WHOLE), x) for x in GRID['fine_tuned']]
    rows = kept(STUDY, fine_tuned, wanted)
    wanted = [(named_run(*x[:2], 3, x[2]), x) for x in GRID['changed']]
    rows = kept(STUDY, changed, wanted)
    rows = rows.groupby(KEYS, as_index=False, sort=False).first()
    wanted = [(dict(count=count), (count,)) for count in GRID['synthetic']]
    synthetic = kept('few_photos_synthetic', fitted, wanted)
    records = synthetic.to_dict('records')
    return dict(trained=partial(by_folds, rows), synthetic=records)


def named_run(backbone, name, crops, recipe):
    """Return the columns identifying a training run."""
    return dict(backbone=backbone, set=name, crops=crops, recipe=recipe)


def measured(backbone, name, crops):
    """Fine-tune on all training photos, from a probe with one or three crops;
    return accuracies in percent."""
    zooms = patch.object(plans, 'CROP_ZOOMS', plans.CROP_ZOOMS[: crops - 1])
    with zooms, planned(backbone, name) as (plan, training, test, log):
        probe, fitted, config = begin(plan, training)
        path = train(config, None, log, 'Training')
        row = compare(plan, probe, path, test)
        anew = refit_classifier(plan, path, training, fitted.setting)
        row['refitted'] = accuracy(anew, test)
    told = round(100 * float(fitted.accuracy.mean()), 2)
    return [dict(photos=len(training), folds=told, **row)]


def begin(plan, training):
    """Fit the initial probe; return the probe, its cross-validation results
    and the training config."""
    folder, probe = plan.files.path, plan.probe
    fitted = fit_classifier(plan, probe, training, plan.views)
    start = Path(folder, 'start.pth')
    probe.save(start)
    config = training_config(plan, training, start, Path(folder, 'work'))
    return probe, fitted, config


def fine_tuned(backbone, name):
    """Fine-tune the full ViT with a new last layer and the same recipe; return
    the test accuracy."""
    with planned(backbone, name) as (plan, training, test, log):
        folder, weights = plan.files.path, plan.pretrained.source
        config = training_config(plan, training, weights, Path(folder, 'work'))
        plain = build_plain_config(plan.pretrained, 224, len(training.classes))
        plain['head']['loss'] = config.model.head.loss
        config.model = plain
        path = train(config, 'bf16', log, 'Training')
        right = accuracy(Probe(path, None, plan.device), test)
    return [dict(fine_tuned=right)]


def fitted(count):
    """Run ``fit`` with a number of photos per synthetic cultivar; return test
    accuracies in percent, without and with fine-tuning."""
    with TemporaryDirectory() as folder:
        folder_of_split, fitted = Path(folder, 'photos'), {}
        link(
            DATA / 'synthetic_cultivars',
            folder_of_split,
            train=count,
            test=None,
        )
        options = dict(weights=WEIGHTS / FILES['deit-tiny-p16'])
        options.update(out=Path(folder, 'model'), budget='0.3GMACs')
        for name, flag in (('probe', 'probe_only'), ('fit', 'fine_tune')):
            record = mmclca.fit(
                folder_of_split, **options, **{flag: True}
            ).facts
            fitted[name] = round(100 * record['test']['accuracy'], 2)
    folds = round(100 * record['probe']['accuracy'], 2)
    return [dict(fitted, folds=folds, final=record['final'])]


def link(root, folder_of_split, **splits):
    """Link the first images per class and split into folders."""
    for split, maximum in splits.items():
        rows = pd.Series(read_list(root / f'{split}.txt'))
        for path in rows.groupby(rows).head(maximum).index:
            file = folder_of_split / split / path.removeprefix('images/')
            file.parent.mkdir(parents=True, exist_ok=True)
            file.symlink_to((root / path).resolve())


def changed(backbone, name, change):
    """Fine-tune from a probe with three crops and one changed setting; return
    the ridge regression accuracy on the new features in percent."""
    with planned(backbone, name) as (plan, training, test, log):
        _, fitted, config = begin(plan, training)
        config.merge_from_dict(GRID['changes'][change])
        path = train(config, 'bf16', log, 'Training')
        right = accuracy(
            refit_classifier(plan, path, training, fitted.setting), test
        )
    return [{change: right}]


@contextmanager
def planned(backbone, name):
    """Plan a fit to a dataset; yield the plan, training photos, test photos
    and a log."""
    dataset = photos()[name]
    tested = get_labels(dataset)[1].numpy()
    training, test = named(dataset[~tested]), named(dataset[tested])
    options = FitOptions(weights=WEIGHTS / FILES[backbone], device='cpu')
    with TemporaryDirectory() as folder, Log() as log:
        checked = check_photos(training)
        record = FitRecord.from_call(FitCall(None, options), checked)
        files = FitFolder(folder)
        yield make_plan(files, record, checked, options), training, test, log


def named(rows):
    """Return the photos listed in a table."""
    classes = [f'{label:02}' for label in rows.label]
    fitted = LabeledImages.from_names([*rows.path], classes, 'set')
    fitted.splits[:] = ['train'] * len(classes)
    return fitted


def compare(plan, probe, path, test):
    """Measure a probe, the fine-tuned model, and interpolated weights."""
    labels, trained = torch.tensor(test.labels), Probe(path, None, plan.device)
    scores = [
        measure_accuracy(x, test)[1].softmax(1) for x in (probe, trained)
    ]
    fitted = dict(probe=accuracy(probe, test))
    fitted['scores'] = percent(sum(scores).argmax(1) == labels)
    ends = [deepcopy(x.model.state_dict()) for x in (probe, trained)]
    for share in SHARES:
        # a new probe, as probes cache features
        between = Probe(path, None, plan.device)
        between.model.load_state_dict(
            mixed(ends[0], ends[1], share), strict=False
        )
        fitted[f'{share}'] = accuracy(between, test)
    return fitted


def mixed(first_model, other, share):
    """Interpolate the weights shared by two networks."""
    return {
        key: torch.lerp(first_model[key], other[key], share)
        for key in first_model.keys() & other.keys()
        if first_model[key].is_floating_point()
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
