# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit the last layer of a frozen model to images, in seconds.

python tools/probe.py CONFIG --weights WEIGHTS --images photos/ --out probe.pth
"""

import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

from mmclca.utils.lazy import lazy
from mmclca.utils.terminal import say

from .. import Parser, plain_errors
from ..arguments import (
    add_model_arguments,
    check_file,
    file_named,
    keep_rate,
    positive,
    whole,
)
from ..choices import CLASSIFIERS, METHODS, OUT_TYPES
from .open_set import accuracy, check_known, shared

apis = lazy('mmclca.apis')
loading = lazy('mmclca.apis.loading')
model_files = lazy('mmclca.cli.model_files')
photographs = lazy('mmclca.datasets.photographs')
evaluation = lazy('mmclca.evaluation')
models = lazy('mmclca.models')
utils = lazy('mmpretrain.utils')

SPLITS = ('val', 'test')


def parse_args():
    parser = Parser(
        description='Fit a classifier in closed form to what a frozen model '
        'makes of images, tell by folds how good it is, and write a '
        'checkpoint that all tools take'
    )
    parser.add(
        'model',
        'a config (path or name) of a classifier, or a checkpoint that holds '
        'its config',
    )
    parser.add(
        '--weights',
        'path or address of the weights, or timm://NAME (default: those of '
        'the checkpoint, or load_from of the config)',
    )
    add_images(parser)
    add_variant(parser)
    add_classifier(parser)
    out = 'checkpoint to write'
    parser.add('--out', out, Path('probe.pth'), type=file_named('.pth'))
    add_model_arguments(parser)
    args = parser.parse_args()
    check(parser, args)
    return args


def add_images(parser):
    parser.add(
        '--images',
        'a folder with a folder a class, a table (.csv, .tsv, .xlsx, .ods) '
        'of files and classes, or a .txt list of "path label" (default: the '
        'training split of the config)',
        metavar='PLACE',
    )
    parser.add(
        '--groups',
        'images of one thing, such as a plant, which stay in one fold: a '
        'regular expression that is searched for in each path (its first '
        'group counts, else all of it), or a column of the table',
        metavar='REGEX',
    )
    parser.add(
        '--test',
        'images to measure the result on once: a folder, a .txt list, or '
        'val or test for a split of the config',
        metavar='PLACE',
    )
    parser.add(
        '--cache',
        'folder to keep features in: no image goes through a model twice',
        type=Path,
        metavar='DIR',
    )
    parser.add('--batch-size', 'images at a time', 32, type=positive)


def add_variant(parser):
    parser.add(
        '--layers',
        'layers, from 0, to classify by (default: what the head of the model '
        'reads, or with --out-type the first three quarters)',
        nargs='+',
        type=whole,
        metavar='N',
    )
    parser.add(
        '--out-type',
        'what to take of each layer: average of the tokens left, CLS or both '
        '(default: average with --layers)',
        choices=OUT_TYPES,
    )
    parser.add(
        '--method',
        'reduce tokens by this one (default: as the model does)',
        choices=METHODS,
        metavar='NAME',
    )
    parser.add('--keep-rate', 'of --method', type=keep_rate, metavar='RATE')


def add_classifier(parser):
    parser.add(
        '--classifier',
        'ridge regression, shrinkage LDA, logistic regression or nearest '
        'class mean',
        CLASSIFIERS[0],
        choices=CLASSIFIERS,
    )
    parser.add('--folds', 'parts that the images are cut into', 5, type=folds)
    parser.add('--repeats', 'how often they are cut', 5, type=positive)
    parser.add(
        '--class-weights',
        'balanced: classes count alike, whatever their number of images '
        '(default: images do)',
        choices=['balanced'],
    )


def folds(text):
    """A number of folds."""
    positive(text)
    if int(text) < 2:
        raise ValueError
    return int(text)


def check(parser, args):
    if args.keep_rate and not args.method:
        parser.error('--keep-rate needs --method, such as EViT')
    listed = (args.images or '.txt').endswith('.txt')
    if args.groups and listed:
        parser.error('--groups needs --images with a folder or a table')
    check_file(parser, args.out)


def load_probe(args):
    """The probe, and the config of the model with its data sets."""
    cfg, weights = loading.config_and_weights(
        args.model, args.weights, args.cfg_options
    )
    if args.method:
        cfg.model = models.with_reduction(
            cfg.model, args.method, args.keep_rate
        )
    if args.layers or args.out_type:
        out_type = args.out_type or 'average'
        cfg.model = models.with_layer_fusion(cfg.model, args.layers, out_type)
    probe = apis.Probe(cfg, weights, args.device, args.cache, args.batch_size)
    return probe, cfg


def training_images(args, cfg):
    """Images to fit to."""
    if args.images is None:
        return photographs.images_of_split(cfg, 'train')
    if args.images.endswith('.txt'):
        return photographs.images_at(args.images)
    found = photographs.read_photographs(args.images, groups=args.groups)
    return found.select(found.to_train())


def fit(args, probe, images):
    """Fit the probe; gives the images that were read, and the folds."""
    features, unread = probe.features(images.paths)
    images = model_files.read_ones(images, unread)
    if None in images.labels:
        nameless = images.paths[images.labels.index(None)]
        raise ValueError(
            f'{nameless} has no class: give a folder a class, or a list with '
            'labels'
        )
    images = images.of_classes(sorted({*images.labels}))
    found = probe.fit(
        features,
        images.labels,
        images.classes,
        args.classifier,
        images.groups,
        args.folds,
        args.repeats,
        args.class_weights,
        partial(utils.track, description='Folds'),
    )
    return images, features.shape[1], found


def measure(place, cfg, probe, known):
    """Accuracy on images that the probe was not fitted to."""
    if place in SPLITS:
        images = photographs.images_of_split(cfg, place)
    else:
        images = photographs.images_at(place)
    check_known(images, probe.classes)
    both = shared(images, known)
    if both:
        raise ValueError(
            f'{len(both)} of the test images are also fitted to, such as '
            f'{min(both)}: they tell nothing'
        )
    features, unread = probe.features(images.paths)
    images = model_files.read_ones(images, unread)
    right = accuracy(images, probe.scores(features), probe.classes)
    if right is None:
        raise ValueError(f'{images.source} has no classes to measure with')
    return images, right


def lines_of(args, images, channels, found):
    """What the folds tell, in lines."""
    number, classes = len(images.paths), images.classes
    yield (
        f'{number} images of {len(classes)} classes, features of {channels} '
        'channels'
    )
    if not found.independent:
        yield 'an image a class: how good it is cannot be told'
        return
    yield (
        f'{args.classifier}, strength {found.strength:g}, {len(found.logits)} '
        f'x {found.folds} folds: {rate(found.accuracy.mean())}, 95 % interval '
        f'{interval(found.interval())}; macro recall '
        f'{rate(found.macro_recall)}'
    )
    if found.untested:
        names = [classes[i] for i in found.untested]
        yield (
            'not tested, for there is one image (or group) of each: '
            f'{", ".join(names[:5])}{", ..." if names[5:] else ""}'
        )


def rate(share):
    return f'{100 * float(share):.1f} %'


def interval(ends):
    low, high = ends
    return f'{100 * low:.1f} to {100 * high:.1f} %'


def run(args):
    probe, cfg = load_probe(args)
    given = training_images(args, cfg)
    images, channels, found = fit(args, probe, given)
    lines = list(lines_of(args, images, channels, found))
    if args.test:
        tested, right = measure(args.test, cfg, probe, given)
        ends = interval(evaluation.wilson(right, len(tested.paths)))
        lines.append(
            f'test: {rate(right)} of {len(tested.paths)} images, 95 % '
            f'interval {ends}'
        )
    probe.save(args.out)
    return lines


def main(args):
    with plain_errors(), redirect_stdout(sys.stderr):
        lines = run(args)
    say(*lines, args.out)
