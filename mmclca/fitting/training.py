# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The second step of a fit: the network trained on, where that helps.

From the probe, as ``configs/few_shot`` does, if there are photographs enough
to see whether it helps: some are held out. A training is quiet, and resumed
after an interruption.
"""

import math
import os
import time
from pathlib import Path
from statistics import median
from uuid import uuid4

import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import init_default_scope

from mmclca.apis.probe import Probe, fit_linear
from mmclca.apis.probe.folds import fit_temperature
from mmclca.apis.probe.probe import put_classifier
from mmclca.benchmark.steps import quicker_amp
from mmclca.checkpoints.resuming import newest_checkpoint, resume
from mmclca.datasets.photographs import Photographs
from mmclca.datasets.photographs.lists import lines_of_lists, write_lists
from mmclca.datasets.pipelines import evaluation_pipeline
from mmclca.datasets.units import Units
from mmclca.engine.hooks import ProgressHook
from mmclca.engine.runner import build_runner, set_loader_defaults, use_amp
from mmclca.model_index import home
from mmclca.models.heads import nearest_of_others

from .model import Plan
from .probing import CLASSIFIER, fit_classifier, measure, write_model
from .record import FitRecord
from .screen import Log

PARTS = 5
# fewer teach too little (a class), or are no ground for an accuracy (in all)
LEAST_A_CLASS, LEAST = 8, 200
# where so many are right already, training gained nothing in nine sets
WEAK = 0.85
RECIPE = 'lf-evit-kr50_deit-tiny-p16_1xb32-20e_leaf40-224px.py'
# of the recipe: what measures, and what a fit has done already
VALIDATION = ('val_cfg', 'val_dataloader', 'val_evaluator')
UNUSED = (*VALIDATION, 'custom_hooks', 'env_cfg', 'data_root', 'leaf40')
WORKERS = 2  # that read photographs, where there are as many processors


def improve(plan: Plan, record: FitRecord, log: Log) -> dict:
    """Train where it can be measured, and choose the better model.

    Gives ``training`` of the record and, if what was trained is better,
    ``final``, ``held_out`` and ``threshold``.
    """
    why_not = _why_not(plan, record.probe['accuracy'])
    if why_not:
        log.tell_user(f'Training is left out: {why_not}')
        return {}
    began, files = time.perf_counter(), plan.files
    path, known = files.final_training, plan.training
    config = training_config(plan, known, files.probe, path)
    log.tell_user(
        'Training: it is kept if it is not worse on a fifth of these. '
        'After two epochs its time is known; Ctrl-C keeps the model of now'
    )
    init_default_scope(config.default_scope)
    batch = config.train_dataloader.batch_size
    with log.status('Timing steps'):
        amp = quicker_amp(config.model, batch, plan.device)
    strength = record.probe['strength']
    some = _train_without_some(plan, amp, log, strength)
    found, temperature, near = some
    better = {}
    if found['accuracy'] >= found['probe_accuracy']:
        path = train(config, amp, log, 'Training')
        more = temperature, files.features
        probe = refitted(plan, path, known, strength, *more)
        features, _ = probe.features(known.paths)
        threshold = write_model(plan, probe, features, near)
        better = dict(final='trained', held_out=None, threshold=threshold)
    training = dict(
        epochs=config.train_cfg.max_epochs,
        seconds=time.perf_counter() - began,
        # fewer decide, but tell no accuracy
        holdout=found if sum(counts_of(known)) >= LEAST else None,
    )
    return dict(training=training, **better)


def _why_not(plan: Plan, accuracy: float) -> str:
    """Say why nothing is trained; empty if something is."""
    if plan.variant.out_type is None:
        return f'with {plan.pretrained.kind} it was not measured'
    return why_untrained(counts_of(plan.training), accuracy)


def why_untrained(counts: list[int], accuracy: float) -> str:
    """Say why classes of some photographs, of which a probe names a share
    right, are not trained on; empty if they are."""
    if median(counts) < LEAST_A_CLASS:
        return f'fewer than {LEAST_A_CLASS} photographs a class'
    if sum(counts) < LEAST and accuracy >= WEAK:
        return (
            f'with {WEAK:.0%} right and fewer than {LEAST} photographs it '
            'gained nothing on like sets'
        )
    return ''


def hold_out(photographs: Photographs) -> tuple[list[int], list[int]]:
    """Choose positions to train on, and a fifth or a little more to hold out.

    Stratified, with groups kept together. Classes of one photograph, or one
    group, are all trained on.
    """
    units = Units(photographs.labels, photographs.groups)
    train, test = next(units.folds(PARTS, seed=0))
    return train.tolist(), test.tolist()


def counts_of(photographs: Photographs) -> list[int]:
    """Count the photographs of each class; a group counts once, for it is
    held out as a whole."""
    return Units(photographs.labels, photographs.groups).per_class.tolist()


def _train_without_some(
    plan: Plan, amp: str | None, log: Log, strength: float
) -> tuple:
    """Train without some photographs, on which that is measured.

    Gives :func:`measure` of them with ``probe_accuracy``, the temperature of
    the trained model, and how near they are to the others (1, N).
    """
    split, known = hold_out(plan.training), plan.training
    rest, held_out = map(known.select, split)
    work_dir, probe = plan.files.hold_out, plan.probe
    start = work_dir / 'start.pth'
    fit_classifier(plan, probe, rest, plan.views[split[0]])
    probe.save(start)
    config = training_config(plan, rest, start, work_dir)
    before, _ = measure(probe, held_out)
    later = num_steps(config, len(plan.training))
    path = train(config, amp, log, 'Training to see how good it gets', later)
    probe = refitted(plan, path, rest, strength)
    trained, logits = measure(probe, held_out)
    labels = torch.tensor(held_out.labels)
    temperature = fit_temperature(logits, labels, len(labels))
    found = dict(trained, probe_accuracy=before['accuracy'])
    near = nearest_of_others(probe.features(known.paths)[0], [split])
    return found, temperature, near


def refitted(
    plan: Plan,
    path: Path,
    some: Photographs,
    strength: float,
    temperature: float = 1.0,
    cache: Path | None = None,
) -> Probe:
    """Fit the classifier anew to what a trained network sees.

    Of nine sets that was never worse than the probe where that is weak.
    """
    probe = Probe(path, None, plan.device, cache, zooms=plan.zooms)
    given = probe.views(some.paths)[0], some.labels, len(some.classes)
    more = strength, plan.call['class_weights']
    fitted = fit_linear(*given, CLASSIFIER, *more)
    put_classifier(probe.model, fitted, temperature, some.classes)
    return probe


def read_recipe() -> Config:
    """Read the config that the training was measured with."""
    return Config.fromfile(home() / 'configs/few_shot' / RECIPE)


def training_config(
    plan: Plan, photographs: Photographs, start: Path, work_dir: Path
) -> Config:
    """Make the config of training from the checkpoint of a probe."""
    config = read_recipe()
    for name in UNUSED:
        config.pop(name)
    places = os.path.abspath(start), os.path.abspath(work_dir)
    config.load_from, config.work_dir = places
    config.default_hooks.logger.interval = 10
    config.default_hooks.checkpoint.interval = 2
    config.visualizer.vis_backends, config.randomness.seed = [], 0
    config.model = _model(plan, photographs, config.model.head.loss)
    # kept in the checkpoint, which is how photographs are prepared
    config.test_dataloader = plan.config.test_dataloader
    write_lists(lines_of_lists(photographs, work_dir, relative=False), True)
    size = plan.variant.img_size
    _set_loader(config.train_dataloader, work_dir.absolute(), size)
    return config


def _model(plan: Plan, photographs: Photographs, loss: dict) -> dict:
    model = plan.config.model.to_dict()
    # the first third, as was measured with EViT: cheaper, and as good
    depth = len(model['backbone']['out_indices'])
    model['backbone']['frozen_stages'] = depth // 3
    model['head']['loss'] = loss
    if plan.call['class_weights'] is not None:
        counts = torch.tensor(photographs.labels).bincount()
        weights = len(photographs) / (len(counts) * counts)
        loss['class_weight'] = weights.tolist()
    return model


def _set_loader(loader: ConfigDict, lists: Path, img_size: int) -> None:
    """Have the loader of the recipe read the lists of a folder."""
    loader.pop('batch_sampler')
    loader.num_workers = min(WORKERS, os.cpu_count() - 1)
    dataset = loader.dataset
    dataset.data_root, dataset.ann_file = str(lists), 'train.txt'
    dataset.classes = f'{lists}/classes.txt'
    cache, crop, *_ = dataset.pipeline
    cache.transforms = evaluation_pipeline(img_size)[:2]  # once
    crop.crop_size = img_size


def num_steps(config: Config, num_images: int) -> int:
    """Count the steps of a training with some photographs."""
    loader = config.train_dataloader
    images = max(num_images, loader.sampler.min_samples)
    return config.train_cfg.max_epochs * math.ceil(images / loader.batch_size)


def train(
    config: Config, amp: str | None, log: Log, title: str, later: int = 0
) -> Path:
    """Train, from where an earlier run was interrupted.

    In mixed precision of a format, None for float32. ``title`` is that of
    the progress bar, ``later`` the steps of a training after it. Gives the
    last checkpoint.
    """
    config.experiment_name = uuid4().hex  # mmengine keeps things by it
    resume(config, 'auto')
    if amp is not None:
        use_amp(config, amp)
    set_loader_defaults(config, no_pin_memory=False)
    runner = build_runner(config)
    shown = log.bars, log.tell_user, title, later
    runner.register_hook(ProgressHook(*shown))
    runner.train()
    path, _ = newest_checkpoint(Path(config.work_dir))
    return Path(path)
