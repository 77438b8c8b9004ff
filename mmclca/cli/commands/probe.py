# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit a linear probe to the features of a frozen model, estimate its accuracy
by cross-validation, and write a checkpoint for all tools.

python tools/probe.py CONFIG --weights WEIGHTS --images photos/ --out probe.pth
"""

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from shlex import quote

from mmclca.checkpoints import model_folder
from mmclca.errors import Error
from mmclca.utils.messages import join_first, print_safe, warn

from .. import model_files
from ..arguments import check_file, file_named, keep_rate, positive, whole
from ..listing import Listing

LISTING = Listing('models', 'fit a linear probe to frozen features', 'probe')


def add_arguments(parser):
    parser.add(
        'model', 'path or name of a config, or checkpoint with its config'
    )
    parser.add(
        '--weights',
        'path, URL or timm://NAME (default: checkpoint or load_from)',
    )
    add_images(parser)
    add_variant(parser)
    add_classifier(parser)
    out = 'checkpoint to write'
    parser.add('--out', out, Path('probe.pth'), type=file_named('.pth'))
    parser.share('--device', '--cfg-options')


def add_images(parser):
    parser.add(
        '--images PLACE',
        'folder with class folders, table (.csv, .tsv, .xlsx, .ods) or .txt '
        'list (default: train split)',
    )
    parser.add(
        '--groups REGEX',
        'images kept in one fold, e.g. per plant: regex for paths, or table '
        'column',
    )
    parser.add(
        '--test PLACE', 'test images: folder, .txt list, or val or test split'
    )
    parser.add('--cache DIR', 'feature cache folder', type=Path)
    parser.share('--batch-size')


def add_variant(parser):
    parser.add(
        '--layers N',
        'layers, counted from 0 (default: those of the head; with '
        '--out-type the first three quarters)',
        nargs='+',
        type=whole,
    )
    parser.add(
        '--out-type NAME',
        'features per layer: average, std, cls_token, cls_average, cls_std, '
        'cls_average_std (default: average)',
    )
    parser.add(
        '--method NAME', 'token-reduction method (default: from the model)'
    )
    parser.add('--keep-rate RATE', 'keep rate of --method', type=keep_rate)


def add_classifier(parser):
    parser.add('--classifier NAME', 'ridge or logistic', 'ridge')
    parser.share('--folds')
    parser.add('--repeats', 'cross-validation repeats', 5, type=positive)
    parser.share('--class-weights')


def check(args):
    if args.keep_rate and not args.method:
        raise Error('--keep-rate needs --method, such as EViT')
    if args.groups and (args.images or '.txt').endswith('.txt'):
        raise Error('--groups needs --images FOLDER or --images TABLE')
    check_file(args.out)


def load_probe(args):
    """Build the probe; return it with its config."""
    from mmclca.apis import Probe
    from mmclca.apis.loading import config_and_weights
    from mmclca.models import with_layer_fusion, with_reduction

    cfg, weights = config_and_weights(
        args.model, args.weights, args.cfg_options
    )
    if args.method:
        cfg.model = with_reduction(cfg.model, args.method, args.keep_rate)
    if args.layers or args.out_type:
        out_type = args.out_type or 'average'
        cfg.model = with_layer_fusion(cfg.model, args.layers, out_type)
    probe = Probe(cfg, weights, args.device, args.cache, args.batch_size)
    return probe, cfg


def training_images(args, cfg):
    """Read the training images."""
    from mmclca.datasets.photos import read_photos

    if args.images is None or args.images.endswith('.txt'):
        return model_files.read_labeled_images(cfg, args.images, 'train')
    photos = read_photos(args.images, groups=args.groups)
    return photos.select(photos.to_train())


def warn_of_known(model, images):
    """Warn if the backbone was fine-tuned on the images."""
    from mmclca.fitting.fit_folder import FitFolder

    if not model_folder.is_fitted(model):
        return
    files = FitFolder.open(model)
    if files.read().final == 'trained':
        rows = {photo.path for photo in files.read_used_photos()}
        trained = rows & {*map(os.path.abspath, images.paths)}
        if trained:
            warn(
                f'cross-validation is optimistic, as the backbone of {model} '
                f'was trained on {len(trained)} of these {len(images)} images'
            )


def summary_lines(classifier, images, channels, cv):
    """Describe the cross-validated estimate, one fact per line."""
    number, classes = len(images.paths), images.classes
    yield f'Data       {number} images, {len(classes)} classes'
    yield f'Features   {channels} channels'
    if not cv.independent:
        yield 'Accuracy   unknown: one image per class'
        return
    yield (
        f'Classifier {classifier}, regularization strength '
        f'{cv.setting.alpha:g}'
    )
    yield f'Folds      {cv.folds} (cross-validation)'
    yield f'Repeats    {len(cv.logits)}'
    accuracy = format_accuracy(cv.accuracy.mean(), cv.interval())
    yield f'Accuracy   {accuracy}'
    yield f'Recall     {100 * float(cv.macro_recall):.1f}% (macro)'
    if cv.untested:
        names = join_first((classes[i] for i in cv.untested), 5)
        yield f'Not tested {names} (one image or group per class)'


def format_accuracy(share, interval):
    low, high = interval
    return (
        f'{100 * float(share):.1f}% (95% CI {100 * low:.1f}-{100 * high:.1f}%)'
    )


def run(args):
    from mmclca.apis.probe import ClassifierSettings, FoldSettings
    from mmclca.apis.probe.probe import accuracy_on, fit_to_images
    from mmclca.evaluation import wilson

    check(args)
    classifier = ClassifierSettings(args.classifier, args.class_weights)
    probe, cfg = load_probe(args)
    training = training_images(args, cfg)
    warn_of_known(args.model, training)
    images, channels, cv = fit_to_images(
        probe, training, classifier, FoldSettings(args.folds, args.repeats)
    )
    lines = list(summary_lines(args.classifier, images, channels, cv))
    if args.test:
        of_split = args.test in ('val', 'test')
        folder = None if of_split else args.test
        tested = model_files.read_labeled_images(cfg, folder, args.test)
        number, right = accuracy_on(probe, tested, training)
        interval = wilson(right, number)
        lines.append(
            f'Test       {format_accuracy(right, interval)}, {number} images'
        )
    probe.save(args.out)
    return lines


def main(args):
    with redirect_stdout(sys.stderr):
        lines = run(args)
    print_safe(*lines, f'Saved      {args.out}')
    print_safe(
        f'Next       python -m mmclca predict {quote(str(args.out))} PHOTOS'
    )
