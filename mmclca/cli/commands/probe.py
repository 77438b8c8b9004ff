# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/probe.py`` does."""

import sys
from contextlib import redirect_stdout
from functools import partial

from mmengine.config import Config
from mmpretrain.utils import track

from mmclca.apis import Probe
from mmclca.apis.labelled_images import (
    LabelledImages,
    images_at,
    images_of_split,
)
from mmclca.apis.loading import config_and_weights
from mmclca.configs import merge_options, read_config
from mmclca.datasets.photographs import read_photographs
from mmclca.evaluation import wilson
from mmclca.models import with_layer_fusion, with_reduction
from mmclca.utils.terminal import say

from .. import plain_errors
from .open_set import accuracy, check_known, shared

SPLITS = ('val', 'test')


def load_probe(args):
    """The probe, and the config of the model with its data sets."""
    model, weights = config_and_weights(args.model, args.weights)
    cfg = model if isinstance(model, Config) else read_config(model)
    merge_options(cfg, args.cfg_options)
    if args.method:
        cfg.model = with_reduction(cfg.model, args.method, args.keep_rate)
    if args.layers or args.out_type:
        out_type = args.out_type or 'average'
        cfg.model = with_layer_fusion(cfg.model, args.layers, out_type)
    probe = Probe(cfg, weights, args.device, args.cache, args.batch_size)
    return probe, cfg


def training_images(args, cfg):
    """Images to fit to, and the group of each or None."""
    if args.images is None:
        return images_of_split(cfg, 'train'), None
    if args.images.endswith('.txt'):
        return images_at(args.images), None
    found = read_photographs(args.images, groups=args.groups)
    found = found.select(found.to_train())
    names = [found.classes[label] for label in found.labels]
    return LabelledImages(found.paths, names, found.source), found.groups


def fit(args, probe, images, groups):
    """Fit the probe; gives the images that were read, and the folds."""
    features, unread = probe.features(images.paths)
    read = [i for i in range(len(images.paths)) if i not in unread]
    groups = groups and [groups[i] for i in read]
    images = images.without(unread)
    if None in images.names:
        nameless = images.paths[images.names.index(None)]
        raise ValueError(
            f'{nameless} has no class: give a folder a class, or a list with '
            'labels'
        )
    classes = images.classes
    found = probe.fit(
        features,
        [classes.index(name) for name in images.names],
        classes,
        args.classifier,
        groups,
        args.folds,
        args.repeats,
        args.class_weights,
        partial(track, description='Folds'),
    )
    return images, features.shape[1], found


def measure(place, cfg, probe, known):
    """Accuracy on images that the probe was not fitted to."""
    split = place in SPLITS
    images = images_of_split(cfg, place) if split else images_at(place)
    check_known(images, probe.classes)
    both = shared(images, known)
    if both:
        raise ValueError(
            f'{len(both)} of the test images are also fitted to, such as '
            f'{min(both)}: they tell nothing'
        )
    features, unread = probe.features(images.paths)
    images = images.without(unread)
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
    given, groups = training_images(args, cfg)
    images, channels, found = fit(args, probe, given, groups)
    lines = list(lines_of(args, images, channels, found))
    if args.test:
        tested, right = measure(args.test, cfg, probe, given)
        ends = interval(wilson(right, len(tested.paths)))
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
