# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/open_set.py`` does."""

import math
import sys
from contextlib import redirect_stdout
from os.path import realpath

import torch

from mmclca.apis.features import extract_logits
from mmclca.apis.labelled_images import images_at
from mmclca.apis.rejection import Threshold, fingerprint, write_threshold
from mmclca.evaluation.open_set import (
    SCORES,
    auroc,
    false_positive_rate,
    fit_threshold,
)

from .. import plain_errors
from ..model_files import images_of, load

COLUMNS = (
    *('score', 'auroc', 'fpr95', 'threshold'),
    *('known_lost', 'unknown_rejected'),
)


def logits_of(inferencer, images, batch_size):
    """Images that can be read, and their class scores."""
    logits, unread = extract_logits(inferencer, images.paths, batch_size)
    return images.without(unread), logits


def check_known(images, classes):
    """Refuse images of classes that the model has not learned."""
    strange = sorted({*images.names} - {None, *classes})
    if strange:
        raise ValueError(
            f'{images.source} has images of {len(strange)} classes that the '
            f'model does not know ({", ".join(strange[:3])}, ...): it knows '
            f'{", ".join(classes[:3])}, ...; a classes.txt beside a list '
            'names its labels'
        )


def check_disjoint(known, unknown):
    """Refuse unknown images that are said to be known, too."""
    both = shared(known, unknown)
    if both:
        raise ValueError(
            f'{len(both)} images of {unknown.source} are also in '
            f'{known.source}, as {min(both)}'
        )


def shared(one, other):
    """Files that are in both."""
    return {*map(realpath, one.paths)} & {*map(realpath, other.paths)}


def warn_of_shared(known, test):
    """Say so where the threshold was chosen on what measures it."""
    both = shared(known, test)
    if both:
        print(
            f'{len(both)} of {len(test.paths)} test images ({test.source}) '
            'are also those that the threshold is chosen on: on new leaves '
            'known_lost may be higher. Give others with --known or --test',
            file=sys.stderr,
        )


def warn_of_few(number, accept):
    """Say so where every one of the known images has to be accepted."""
    if accept < 1 and number * (1 - accept) < 1 - 1e-9:
        print(
            f'warning: {number} known images are few: the threshold is the '
            f'lowest score of them. For --accept {accept:g} give '
            f'{math.ceil(1 / (1 - accept) - 1e-9)} or more',
            file=sys.stderr,
        )


def measure(logits, accept):
    """For each score its threshold, and how well it works.

    Args:
        logits (dict[str, Tensor]): Of 'known' images, and maybe of 'test'
            and 'unknown' ones.
        accept (float): Share of known images to accept.
    """
    rows = []
    for name, function in SCORES.items():
        scores = {part: function(x) for part, x in logits.items()}
        threshold = fit_threshold(scores['known'], accept)
        row = dict(score=name, threshold=threshold)
        if 'unknown' in scores:
            test, unknown = scores['test'], scores['unknown']
            row.update(
                auroc=auroc(test, unknown),
                fpr95=false_positive_rate(test, unknown),
                known_lost=share(test < threshold),
                unknown_rejected=share(unknown < threshold),
            )
        rows.append(row)
    return rows


def share(flags):
    return float(flags.double().mean())


def accuracy(images, logits, classes):
    """Share of images that are named rightly; None without labels."""
    pairs = zip(images.names, logits.argmax(dim=1).tolist(), strict=True)
    right = [name == classes[label] for name, label in pairs if name]
    return sum(right) / len(right) if right else None


def run(args):
    inferencer = load(
        args.config, args.checkpoint, args.cfg_options, args.device
    )
    parts = dict(known=images_of(inferencer, args.known, 'val'))
    if args.unknown:
        parts['test'] = images_of(inferencer, args.test, 'test')
        parts['unknown'] = images_at(args.unknown)
        for name in ('known', 'test'):
            check_disjoint(parts[name], parts['unknown'])
        warn_of_shared(parts['known'], parts['test'])
    for name in parts.keys() - {'unknown'}:
        check_known(parts[name], inferencer.classes)
    logits = {}
    for name, images in parts.items():
        found = logits_of(inferencer, images, args.batch_size)
        parts[name], logits[name] = found
    warn_of_few(len(parts['known'].paths), args.accept)
    rows = measure(logits, args.accept)
    notes = dict(
        accept=args.accept,
        images={name: len(images.paths) for name, images in parts.items()},
        scores=rows,
    )
    if args.unknown:
        rates = accuracy(parts['test'], logits['test'], inferencer.classes)
        notes['test_accuracy'] = rates
    value = next(r['threshold'] for r in rows if r['score'] == args.score)
    threshold = Threshold(args.score, value, fingerprint(inferencer.model))
    write_threshold(threshold, args.out, **notes)
    return notes


def show(notes):
    counts = ', '.join(f'{n} {name}' for name, n in notes['images'].items())
    print(f'images: {counts}')
    columns = [name for name in COLUMNS if name in notes['scores'][0]]
    widths = [max(len(name), 11) for name in columns]
    print('  '.join(map(str.rjust, columns, widths)))
    for row in notes['scores']:
        cells = [row['score'], *(f'{row[name]:.4f}' for name in columns[1:])]
        print('  '.join(map(str.rjust, cells, widths)))


def main(args):
    torch.manual_seed(0)
    with plain_errors(), redirect_stdout(sys.stderr):
        notes = run(args)
    show(notes)
    print(args.out)
