# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Second step of a fit: fine-tune the backbone if there are enough photos.

Fine-tuning starts from the linear probe, as in ``configs/few_shot``. A fifth
of the photos is held out to decide whether the fine-tuned model is kept. An
interrupted training is resumed.
"""

import math
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple
from uuid import uuid4

import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import init_default_scope
from torch import Tensor

from mmclca.apis.probe import LabeledFeatures, Probe, ProbeSetting, fit_linear
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
from mmclca.evaluation.calibration_file import HeldOut
from mmclca.model_index import package_root
from mmclca.models.heads import get_feature_subsets, nearest_of_others

from . import probing
from .accuracy_parts import FinetuneVal, Training, describe_fine_tuning
from .calibration import add_held_out
from .console_text import row
from .estimate import measure_accuracy
from .log import FitRunner, Log, Step
from .plan import Plan, list_labels
from .probing import fit_classifier, write_model
from .record import FitRecord
from .record_parts import require_part

LABEL = 'Fine-tune'
START = 'a first model is ready; improving it takes minutes'
KEPT = 'the improved model is more accurate and is kept'
DISCARDED = 'the first model is more accurate and is kept'
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


class HoldOutResult(NamedTuple):
    """Result of a fine-tuning without the hold-out set.

    Args:
        finetune_val (FinetuneVal): Accuracy on the hold-out set.
        temperature (float): Divisor of the scores.
        similarities (Tensor): (1, N), of each held-out photo to the nearest
            photo trained on; NaN for photos trained on.
        held_out (HeldOut): The hold-out set, for prediction sets.
    """

    finetune_val: FinetuneVal
    temperature: float
    similarities: Tensor
    held_out: HeldOut


def fine_tune(plan: Plan, record: FitRecord, log: Log) -> FitRecord:
    """Fine-tune, and keep the result unless it is less accurate.

    Returns:
        FitRecord: The record with ``training`` and, if the fine-tuned model
        is kept, with its ``final``, ``test`` and ``threshold``.
    """
    log.begin(Step.FINE_TUNE)
    start, files = time.perf_counter(), plan.files
    photos = plan.training_photos
    work_dir = files.final_training
    config = training_config(plan, photos, files.probe, work_dir)
    split = hold_out(photos)
    epochs = config.train_cfg.max_epochs
    share = len(split.test) / len(photos)
    log.add_details(
        [row(LABEL, f'{epochs} epochs, {share:.0%} of photos held out')]
    )
    log.print_plain([row('Training', START)])
    if log.is_console:
        log.print(row('', 'Ctrl-C keeps the current model'))
    init_default_scope(config.default_scope)
    batch = config.train_dataloader.batch_size
    with log.status('Measuring the training speed'):
        amp = quicker_amp(config.model, batch, plan.device)
    setting = ProbeSetting(
        record.estimate.alpha, record.estimate.late_cls_weight
    )
    result = fine_tune_on_part(plan, split, amp, log, setting)
    finetune_val = result.finetune_val
    is_kept = finetune_val.accuracy >= finetune_val.probe_accuracy
    log.add_details([row(LABEL, describe_fine_tuning(is_kept, finetune_val))])
    log.print_plain([row('Training', KEPT if is_kept else DISCARDED)])
    if is_kept:
        checkpoint = train(config, amp, log, 'Fine-tuning on all photos')
        probe = refit_classifier(
            plan,
            checkpoint,
            photos,
            setting,
            result.temperature,
            files.features,
        )
        views, _ = probe.views(photos.paths)
        add_held_out(plan, result.held_out)
        record = replace(
            record,
            final='trained',
            test=probing.measure_test(plan, probe),
            threshold=write_model(
                plan,
                probe,
                plan.select_references(views),
                result.similarities,
                photos.groups,
            ),
        )
    # with fewer photos, the accuracy is too imprecise to be reported
    is_reported = sum(photos_per_class(photos)) >= MIN_PHOTOS
    training = Training(
        epochs=epochs,
        seconds=time.perf_counter() - start,
        finetune_val=finetune_val if is_reported else None,
    )
    return replace(record, training=training)


def explain_impossible(plan: Plan) -> str:
    """Return why a model is never fine-tuned, or an empty text."""
    if plan.variant.out_type is None and not plan.pretrained.has_stages:
        backbone = plan.pretrained.backbone_name
        return f'its benefit with {backbone} has not been measured'
    if max(photos_per_class(plan.training_photos)) < 2:
        return 'no class has two photos'
    return ''


def explain_skipping(plan: Plan, is_requested: bool | None) -> str:
    """Return why fine-tuning is skipped, or an empty text.

    Unless it is requested, the number of photos decides.
    """
    reason = explain_impossible(plan)
    if reason or is_requested:
        return reason
    return explain_too_few(plan.training_photos)


def explain_too_few(photos: LabeledImages) -> str:
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


class Split(NamedTuple):
    """Positions of the photos for training and for the hold-out set."""

    train: list[int]
    test: list[int]


def hold_out(photos: LabeledImages) -> Split:
    """Split photos into training and hold-out positions.

    The hold-out set is about a fifth, stratified by class, with groups kept
    together. Classes with one photo or group are used for training only.
    """
    units = GroupedSplits(list_labels(photos), photos.groups)
    folds = units.folds(HOLD_OUT_FOLDS, seed=0)
    # a fold is empty if its groups have the only photos of a class
    train, test = next(split for split in folds if len(split[1]))
    return Split(train.tolist(), test.tolist())


def photos_per_class(photos: LabeledImages) -> list[int]:
    """Count photos per class; groups, held out as a whole, count once."""
    units = GroupedSplits(list_labels(photos), photos.groups)
    return units.per_class.tolist()


def fine_tune_on_part(
    plan: Plan, split: Split, amp: str | None, log: Log, setting: ProbeSetting
) -> HoldOutResult:
    """Fine-tune without the hold-out set, and measure the accuracy on it.

    ``amp`` is the format of mixed precision, see :func:`train`.
    """
    photos = plan.training_photos
    training, test = photos.select(split.train), photos.select(split.test)
    work_dir, probe = plan.files.hold_out, plan.probe
    start = work_dir / 'start.pth'
    fit_classifier(plan, probe, training, plan.views[split.train])
    probe.save(start)
    config = training_config(plan, training, start, work_dir)
    before, _ = measure_accuracy(probe, test)
    later = num_steps(config, len(photos))
    checkpoint = train(config, amp, log, 'Fine-tuning for the test', later)
    probe = refit_classifier(plan, checkpoint, training, setting)
    after, logits = measure_accuracy(probe, test)
    labels = torch.tensor(test.labels)
    temperature = fit_temperature(logits, labels, len(labels))
    if plan.quarters:
        views, _ = probe.views(photos.paths)
        references = plan.select_references(views)
    else:  # without zoomed views of the hold-out set
        references, _ = probe.features(photos.paths)
    return HoldOutResult(
        FinetuneVal(
            after.n,
            after.accuracy,
            after.low,
            after.high,
            probe_accuracy=before.accuracy,
        ),
        temperature=temperature,
        similarities=nearest_of_others(references, [split]),
        held_out=HeldOut(
            torch.tensor(split.test), (logits / temperature).softmax(1)
        ),
    )


def refit_classifier(
    plan: Plan,
    checkpoint: Path,
    photos: LabeledImages,
    setting: ProbeSetting,
    temperature: float = 1.0,
    features: Path | None = None,
) -> Probe:
    """Refit the classifier to the features of a fine-tuned backbone.

    The result was more accurate than the linear probe on the three of nine
    datasets with a cross-validated accuracy below 85%.

    Args:
        plan (Plan): Plan of the fit.
        checkpoint (Path): Fine-tuned checkpoint.
        photos (LabeledImages): Photos to fit to.
        setting (ProbeSetting): Setting of the linear probe.
        temperature (float): Divisor of the scores. Defaults to 1.0.
        features (Path, optional): Folder for computed features. Defaults to
            None.
    """
    probe = plan.build_probe(checkpoint, features=features)
    views, _ = probe.views(photos.paths)
    data = LabeledFeatures(
        views,
        list_labels(photos),
        len(photos.classes),
        feature_subsets=get_feature_subsets(probe.model.head),
    )
    fitted = fit_linear(data, plan.classifier, setting)
    put_classifier(probe.model, fitted, temperature, photos.classes)
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
    write_lists(format_lists(photos, work_dir, relative=False), force=True)
    img_size = require_part(plan.variant.img_size, 'img_size')
    _set_loader(config.train_dataloader, work_dir.absolute(), img_size)
    return config


def _model(plan: Plan, photos: LabeledImages, loss: dict) -> dict:
    """Return the model config with loss, class weights, frozen layers."""
    model = plan.config.model.to_dict()
    if not plan.pretrained.has_stages:
        # freeze the first third: cheaper and equally accurate with EViT
        depth = len(model['backbone']['out_indices'])
        model['backbone']['frozen_stages'] = depth // 3
    model['head']['loss'] = loss
    if plan.options.class_weights is not None:
        counts = torch.tensor(photos.labels).bincount()
        weights = len(photos) / (len(counts) * counts)
        loss['class_weight'] = weights.tolist()
    return model


def count_workers() -> int:
    """Return the number of loader processes.

    It is 0 on systems that do not fork: each would import PyTorch, and run the
    script of the user again.
    """
    workers = WORKERS if sys.platform == 'linux' else 0
    return min(workers, os.cpu_count() - 1)


def _set_loader(loader: ConfigDict, lists: Path, img_size: int) -> None:
    """Point the data loader of the recipe to the lists in a folder."""
    loader.pop('batch_sampler')
    loader.num_workers = count_workers()
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
    checkpoint, _ = newest_checkpoint(Path(config.work_dir))
    return Path(require_part(checkpoint, 'checkpoint'))
