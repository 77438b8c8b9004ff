# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Second step of a fit: fine-tune the backbone if there are enough photos.

Fine-tuning starts from the linear probe, as in ``configs/few_shot``. A fifth
of the photos is held out to decide whether the fine-tuned model is kept. An
interrupted training is resumed.
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
from mmclca.apis.probe.classifiers import ProbeSetting
from mmclca.apis.probe.folds import fit_temperature
from mmclca.apis.probe.probe import put_classifier
from mmclca.benchmark.steps import quicker_amp
from mmclca.checkpoints.resuming import newest_checkpoint
from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.datasets.photos import LabeledImages
from mmclca.datasets.photos.lists import format_lists, write_lists
from mmclca.datasets.pipelines import evaluation_pipeline
from mmclca.engine.hooks import ProgressHook
from mmclca.engine.runner import build_runner, use_amp
from mmclca.model_index import package_root
from mmclca.models.heads import get_feature_subsets, nearest_of_others

from . import probing
from .log import FitRunner, Log, Step
from .model import Plan
from .probing import CLASSIFIER, fit_classifier, measure, write_model
from .record import FitRecord
from .screen import row

LABEL = 'Fine-tune'
HOLD_OUT_FOLDS = 5
# minimum photos to fine-tune unasked: in the median class, and in all, so
# that 40 are held out. If fine-tuning changes a fifth of the predictions and
# loses 8 points, 10 held-out photos keep it in 42% of cases, 40 in 16%
MIN_PER_CLASS, MIN_PHOTOS = 8, 200
RECIPE = 'lf-evit-kr50_deit-tiny-p16_1xb32-20e_leaf40-224px.py'
# parts of the recipe for validation, and for steps done by fit itself
VALIDATION = ('val_cfg', 'val_dataloader', 'val_evaluator')
UNUSED = (*VALIDATION, 'custom_hooks', 'env_cfg', 'data_root', 'leaf40')
WORKERS = 2  # maximum number of loader processes


def fine_tune(plan: Plan, record: FitRecord, log: Log) -> dict:
    """Fine-tune, and keep the result unless it is less accurate.

    Return ``training`` of the record and, if the fine-tuned model is kept,
    ``final``, ``test`` and ``threshold``.
    """
    log.begin(Step.FINE_TUNE)
    began, files = time.perf_counter(), plan.files
    path, known = files.final_training, plan.training
    config = training_config(plan, known, files.probe, path)
    split = hold_out(known)
    epochs, share = config.train_cfg.max_epochs, len(split[1]) / len(known)
    log.print(row(LABEL, f'{epochs} epochs, {share:.0%} of photos held out'))
    if log.is_console:
        log.print(row('', 'Ctrl-C keeps the current model'))
    init_default_scope(config.default_scope)
    batch = config.train_dataloader.batch_size
    with log.status('Measuring the training speed'):
        amp = quicker_amp(config.model, batch, plan.device)
    setting = ProbeSetting(
        record.probe['alpha'], record.probe['late_cls_weight']
    )
    some = _train_without_held_out(plan, split, amp, log, setting)
    found, temperature, near = some
    better, is_kept = {}, found['accuracy'] >= found['probe_accuracy']
    log.print(row(LABEL, _compared(found, is_kept)))
    if is_kept:
        path = train(config, amp, log, 'Fine-tuning on all photos')
        more = temperature, files.features
        probe = refit_classifier(plan, path, known, setting, *more)
        features, _ = probe.features(known.paths)
        better = dict(
            final='trained',
            test=probing.measure_held_out(plan, probe),
            threshold=write_model(plan, probe, features, near),
        )
    training = dict(
        epochs=epochs,
        seconds=time.perf_counter() - began,
        # with fewer photos, the accuracy is too imprecise to be reported
        finetune_val=found
        if sum(photos_per_class(known)) >= MIN_PHOTOS
        else None,
    )
    return dict(training=training, **better)


def _compared(found: dict, is_kept: bool) -> str:
    """Describe the held-out accuracy before and after fine-tuning."""
    return (
        f'{"kept" if is_kept else "discarded"}, held-out accuracy '
        f'{found["probe_accuracy"]:.1%} -> {found["accuracy"]:.1%} on '
        f'{found["n"]} photos'
    )


def why_impossible(plan: Plan) -> str:
    """Return why a model is never fine-tuned, or an empty text."""
    if plan.variant.out_type is None and not plan.pretrained.is_of_timm:
        kind = plan.pretrained.kind
        return f'its benefit with {kind} has not been measured'
    if max(photos_per_class(plan.training)) < 2:
        return 'no class has two photos'
    return ''


def why_skipped(photos: LabeledImages) -> str:
    """Return why fine-tuning is skipped unless requested, or an empty text.

    The number of photos decides; a group counts once.
    """
    counts = photos_per_class(photos)
    unit = 'groups' if photos.groups else 'photos'
    if median(counts) < MIN_PER_CLASS:
        return (
            f'{median(counts):g} {unit} in the median class, '
            f'{MIN_PER_CLASS} needed'
        )
    if sum(counts) < MIN_PHOTOS:
        return (
            f'{sum(counts)} {unit}, {MIN_PHOTOS} needed to decide whether it '
            'helps'
        )
    return ''


def hold_out(photos: LabeledImages) -> tuple[list[int], list[int]]:
    """Split photos into training and hold-out positions.

    The hold-out set is about a fifth, stratified by class, with groups kept
    together. Classes with one photo or group are used for training only.
    """
    units = GroupedSplits(photos.labels, photos.groups)
    folds = units.folds(HOLD_OUT_FOLDS, seed=0)
    # a fold is empty if its groups have the only photos of a class
    train, test = next(split for split in folds if len(split[1]))
    return train.tolist(), test.tolist()


def photos_per_class(photos: LabeledImages) -> list[int]:
    """Count photos per class; groups, held out as a whole, count once."""
    return GroupedSplits(photos.labels, photos.groups).per_class.tolist()


def _train_without_held_out(
    plan: Plan, split: tuple, amp: str | None, log: Log, setting: ProbeSetting
) -> tuple:
    """Fine-tune on the training part of a split; measure on the other.

    Return the measurement with ``probe_accuracy``, the temperature of the
    fine-tuned model, and similarities (1, N): of each held-out photo to the
    nearest photo trained on, NaN for photos trained on.
    """
    known = plan.training
    rest, held_out = map(known.select, split)
    work_dir, probe = plan.files.hold_out, plan.probe
    start = work_dir / 'start.pth'
    fit_classifier(plan, probe, rest, plan.views[split[0]])
    probe.save(start)
    config = training_config(plan, rest, start, work_dir)
    before, _ = measure(probe, held_out)
    later = num_steps(config, len(plan.training))
    path = train(config, amp, log, 'Fine-tuning for the test', later)
    probe = refit_classifier(plan, path, rest, setting)
    trained, logits = measure(probe, held_out)
    labels = torch.tensor(held_out.labels)
    temperature = fit_temperature(logits, labels, len(labels))
    found = dict(trained, probe_accuracy=before['accuracy'])
    near = nearest_of_others(probe.features(known.paths)[0], [split])
    return found, temperature, near


def refit_classifier(
    plan: Plan,
    path: Path,
    some: LabeledImages,
    setting: ProbeSetting,
    temperature: float = 1.0,
    features: Path | None = None,
) -> Probe:
    """Refit the classifier to the features of a fine-tuned backbone.

    ``path`` is the fine-tuned checkpoint, ``some`` are the photos to fit to,
    ``setting`` is that of the probe, and ``features`` a folder for computed
    features. The result was more accurate than the linear probe on the three
    of nine datasets with a cross-validated accuracy below 85%.
    """
    probe = plan.probe_of(path, features=features)
    given = probe.views(some.paths)[0], some.labels, len(some.classes)
    more = dict(setting._asdict(), class_weights=plan.call['class_weights'])
    more['feature_subsets'] = get_feature_subsets(probe.model.head)
    fitted = fit_linear(*given, CLASSIFIER, **more)
    put_classifier(probe.model, fitted, temperature, some.classes)
    return probe


def read_recipe() -> Config:
    """Read the fine-tuning config, whose benefit was measured."""
    return Config.fromfile(package_root() / 'configs/few_shot' / RECIPE)


def training_config(
    plan: Plan, photos: LabeledImages, start: Path, work_dir: Path
) -> Config:
    """Build the training config, and write its photo lists to ``work_dir``.

    Training begins with ``start``, a probe checkpoint.
    """
    config = read_recipe()
    for name in UNUSED:
        config.pop(name)
    places = os.path.abspath(start), os.path.abspath(work_dir)
    config.load_from, config.work_dir = places
    config.default_hooks.logger.interval = 10
    config.default_hooks.checkpoint.interval = 2
    config.visualizer.vis_backends, config.randomness.seed = [], 0
    config.model = _model(plan, photos, config.model.head.loss)
    # stored in the checkpoint, for inference
    config.test_dataloader = plan.config.test_dataloader
    write_lists(format_lists(photos, work_dir, relative=False), True)
    size = plan.variant.img_size
    _set_loader(config.train_dataloader, work_dir.absolute(), size)
    return config


def _model(plan: Plan, photos: LabeledImages, loss: dict) -> dict:
    """Return the model config with loss, class weights, frozen layers."""
    model = plan.config.model.to_dict()
    if not plan.pretrained.is_of_timm:
        # freeze the first third: cheaper and equally accurate with EViT
        depth = len(model['backbone']['out_indices'])
        model['backbone']['frozen_stages'] = depth // 3
    model['head']['loss'] = loss
    if plan.call['class_weights'] is not None:
        counts = torch.tensor(photos.labels).bincount()
        weights = len(photos) / (len(counts) * counts)
        loss['class_weight'] = weights.tolist()
    return model


def _set_loader(loader: ConfigDict, lists: Path, img_size: int) -> None:
    """Point the data loader of the recipe to the lists in a folder."""
    loader.pop('batch_sampler')
    loader.num_workers = min(WORKERS, os.cpu_count() - 1)
    dataset = loader.dataset
    dataset.data_root, dataset.ann_file = str(lists), 'train.txt'
    dataset.classes = f'{lists}/classes.txt'
    cache, crop, *_ = dataset.pipeline
    cache.transforms = evaluation_pipeline(img_size)[:2]
    crop.crop_size = img_size


def num_steps(config: Config, num_images: int) -> int:
    """Count the training steps for a number of photos."""
    loader = config.train_dataloader
    images = max(num_images, loader.sampler.min_samples)
    return config.train_cfg.max_epochs * math.ceil(images / loader.batch_size)


def train(
    config: Config, amp: str | None, log: Log, title: str, later: int = 0
) -> Path:
    """Train or resume; return the last checkpoint.

    ``amp`` is the format for mixed precision, None for float32. ``title``
    labels the progress bar; ``later`` are the steps of a later training,
    which count for the remaining time.
    """
    config.experiment_name = uuid4().hex  # key of mmengine's global objects
    checkpoint, _ = newest_checkpoint(Path(config.work_dir))
    if checkpoint is not None:
        config.resume, config.load_from = True, checkpoint
    if amp is not None:
        use_amp(config, amp)
    runner = build_runner(config, FitRunner)
    runner.register_hook(ProgressHook(log.print, title, later))
    runner.train()
    path, _ = newest_checkpoint(Path(config.work_dir))
    return Path(path)
