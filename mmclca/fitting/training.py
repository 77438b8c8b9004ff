# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The second step of a fit: the network trained on, where that pays.

From the probe, as ``configs/few_shot`` does. docs/results/few_photographs.md
says what was tried. A training is quiet, and resumed after an interruption.
"""

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from uuid import uuid4

import numpy as np
import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import init_default_scope

from mmclca.apis.probe import Linear, Probe
from mmclca.apis.probe.folds import fit_temperature
from mmclca.apis.probe.probe import put_classifier
from mmclca.benchmark.steps import Setting, median_milliseconds, training_step
from mmclca.checkpoints.resuming import newest_checkpoint, resume
from mmclca.datasets.photographs import Photographs
from mmclca.datasets.photographs.lists import lines_of_lists, write_lists
from mmclca.datasets.pipelines import evaluation_pipeline
from mmclca.datasets.units import Units
from mmclca.engine.runner import build_runner, set_loader_defaults, use_amp
from mmclca.model_index import home
from mmclca.models.heads import last_linear
from mmclca.registry import MODELS

from .model import ACCURACY, Plan
from .probing import fit_classifier, measure, probe_of, write_model
from .record import FitRecord
from .screen import BarHook, Log, TimeLeftHook

# of the errors of the probe that training must be expected to remove
WORTH = 0.05
# keep rate, accuracy of the probe on test images, and of what was trained on
# from it. DeiT-Tiny, three images a class: leaf40_white, five draws; 38
# diseases of leaves, by a probe of layers 2, 5, 8 and 11; 24 drawn cultivars
# (synthetic_leaves.py with --classes 24 --difference 0.6 --seed 3), the last
# two with one draw
MEASURED = (
    (0.1, 0.875, 0.922),
    (0.25, 0.948, 0.945),
    (0.5, 0.968, 0.950),
    (0.1, 0.57, 0.686),
    (0.5, 0.72, 0.773),
    (0.25, 0.326, 0.601),
    (0.5, 0.451, 0.604),
)
PARTS = 5
# fewer are no ground for an accuracy
LEAST, LEAST_A_CLASS = 200, 8
RECIPE = 'lf-evit-kr50_deit-tiny-p16_1xb32-20e_leaf40-224px.py'
# of the recipe: what measures, and what a fit has done already
VALIDATION = ('val_cfg', 'val_dataloader', 'val_evaluator')
UNUSED = (*VALIDATION, 'custom_hooks', 'env_cfg', 'data_root', 'leaf40')
WORKERS = 2  # that read photographs, where there are as many processors
STEPS = 2  # that are timed
FASTER = 0.8  # of the time in float32, or bfloat16 is not worth it


def improve(plan: Plan, record: FitRecord, log: Log) -> dict:
    """Train where that pays, and choose the better model.

    Gives ``training`` of the record and, if what was trained is better,
    ``final``, ``held_out`` and ``threshold``.
    """
    why_not = _why_not(plan, record.probe['accuracy'])
    if why_not:
        log.tell_user(f'Training is left out: {why_not}')
        return {}
    began, files = time.perf_counter(), plan.files
    gain = errors_removed(record.probe['accuracy'], plan.variant.keep_rate)
    enough, path = is_enough(plan.training), files.training / 'all'
    config = training_config(plan, plan.training, files.probe, path)
    log.tell_user(
        f'Training: on like sets it removed {gain:.0%} of the errors; after '
        'two epochs the time left is known. Ctrl-C keeps the model of now'
    )
    with log.status('Timing steps'):
        amp = quicker_format(config, plan.device)
    found, temperature, logits = _train_without_some(plan, amp, log)
    better = {}
    if not enough or found['accuracy'] >= found['probe_accuracy']:
        probe = Probe(train(config, amp, log, 'Training'), None, plan.device)
        last = last_linear(probe.model.head)
        fitted = Linear(last.weight.flatten(1), last.bias)
        put_classifier(probe.model, fitted, temperature, plan.training.classes)
        threshold = write_model(files.draft, probe, logits)
        better = dict(final='trained', held_out=None, threshold=threshold)
    training = dict(
        epochs=config.train_cfg.max_epochs,
        seconds=time.perf_counter() - began,
        reason=f'expected to remove {gain:.0%} of the errors',
        holdout=found if enough else None,
    )
    return dict(training=training, **better)


def _why_not(plan: Plan, accuracy: float | None) -> str:
    """Say why training is not worth it; empty if it is."""
    if accuracy is None:
        return 'nothing would tell whether it helps'
    if plan.variant not in ACCURACY:
        return f'with {plan.pretrained.kind} it was not measured'
    gain = errors_removed(accuracy, plan.variant.keep_rate)
    few = f'on like sets it removed {max(gain, 0):.0%} of the errors'
    return few if gain < WORTH else ''


def errors_removed(accuracy: float, keep_rate: float) -> float:
    """Estimate the share of the probe's errors that training removes.

    Between the sets that were measured at the nearest keep rates, by the
    accuracy of the probe on photographs that it has not seen.
    """
    rates = sorted({rate for rate, _, _ in MEASURED})
    removed = []
    for rate in rates:
        known = sorted(row[1:] for row in MEASURED if row[0] == rate)
        probe, trained = np.array(known).T
        share = (trained - probe) / (1 - probe)
        removed.append(np.interp(accuracy, probe, share))
    return float(np.interp(keep_rate, rates, removed))


def hold_out(photographs: Photographs) -> tuple[list[int], list[int]]:
    """Choose positions to train on, and a fifth or a little more to hold out.

    Stratified, with groups kept together. Classes of one photograph, or one
    group, are all trained on.
    """
    units = Units(photographs.labels, photographs.groups)
    train, test = next(units.folds(PARTS, seed=0))
    return train.tolist(), test.tolist()


def is_enough(photographs: Photographs) -> bool:
    """Tell whether those held out show how good a trained model is."""
    counts = photographs.counts().values()
    return sum(counts) >= LEAST and median(counts) >= LEAST_A_CLASS


def _train_without_some(plan: Plan, amp: str | None, log: Log) -> tuple:
    """Train without some photographs, on which that is measured.

    Gives :func:`measure` of them with ``probe_accuracy``, the temperature of
    the trained model, and its class scores (N, K) divided by that.
    """
    rest, held_out = map(plan.training.select, hold_out(plan.training))
    work_dir, probe = plan.files.training / 'hold_out', probe_of(plan)
    start = work_dir / 'start.pth'
    fit_classifier(plan, probe, rest)
    probe.save(start)
    config = training_config(plan, rest, start, work_dir)
    later = num_steps(config, len(plan.training))
    path = train(config, amp, log, 'Training to see how good it gets', later)
    trained, logits = measure(path, held_out, plan.device)
    before, _ = measure(start, held_out, plan.device)
    labels = torch.tensor(held_out.labels)
    temperature = fit_temperature(logits, labels, len(labels))
    found = dict(trained, probe_accuracy=before['accuracy'])
    return found, temperature, logits / temperature


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
    # those that see all tokens: half of the cost, and as good without
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


def quicker_format(config: Config, device: str) -> str | None:
    """Time a step of a training in two number formats; the quicker one.

    None for float32: bfloat16 takes half the time where a processor has
    instructions for it.
    """
    init_default_scope(config.default_scope)
    steps = {amp: _step(config, device, amp) for amp in (None, 'bf16')}
    setting = Setting(device=device)
    times = median_milliseconds(steps, setting, STEPS, warm_up=1)
    return 'bf16' if times['bf16'] < FASTER * times[None] else None


def _step(config: Config, device: str, amp: str | None) -> Callable:
    """Make a step in a number format."""
    with torch.device(device):
        model = MODELS.build(config.model)
    loader = config.train_dataloader
    setting = Setting(device=device, batch=loader.batch_size, amp=amp)
    images = setting.images(model.backbone.img_size)
    return training_step(model, images, setting)


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
    runner.register_hook(BarHook(log.bars, title))
    runner.register_hook(TimeLeftHook(log.tell_user, later))
    runner.train()
    path, _ = newest_checkpoint(Path(config.work_dir))
    return Path(path)
