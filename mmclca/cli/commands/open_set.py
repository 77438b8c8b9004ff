# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choose the score below which an image is of no known class.

python tools/open_set.py CKPT --known my_leaves/val.txt
python tools/predict.py CKPT IMAGES --reject CKPT.threshold.json

With images of unknown classes it also measures how well that works.
"""

import math
import sys
from contextlib import redirect_stdout
from os.path import realpath
from pathlib import Path

from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import (
    add_config_argument,
    add_model_arguments,
    check_file,
    file_named,
    positive,
)

apis = lazy('mmclca.apis')
features = lazy('mmclca.apis.features')
rejection = lazy('mmclca.apis.rejection')
model_files = lazy('mmclca.cli.model_files')
photographs = lazy('mmclca.datasets.photographs')
evaluation = lazy('mmclca.evaluation')
open_set = lazy('mmclca.evaluation.open_set')
torch = lazy('torch')

PLACE = 'a folder, or a .txt list of "path label" or "path"'
COLUMNS = (
    *('score', 'auroc', 'fpr95', 'threshold'),
    *('known_lost', 'unknown_rejected'),
)


def parse_args():
    parser = Parser(
        description='Choose, on validation images of known classes, the score '
        'below which an image is of no known class. It is written beside the '
        'checkpoint, for predict.py --reject'
    )
    parser.add('checkpoint', 'weights of a classifier')
    add_config_argument(parser)
    parser.add(
        '--known',
        f'images to choose the threshold on: {PLACE} (default: the '
        'validation split of the config)',
        metavar='PLACE',
    )
    parser.add(
        '--score',
        'what is compared with the threshold',
        'max_softmax',
        choices=open_set.SCORES,
    )
    parser.add('--accept', 'share of the known images to accept', 0.95)
    parser.add(
        '--unknown',
        'images of unknown classes, to measure with',
        metavar='PLACE',
    )
    parser.add(
        '--test',
        'other images of known classes, to measure with (default: the test '
        'split of the config)',
        metavar='PLACE',
    )
    parser.add(
        '--out',
        'file for the threshold (default: CHECKPOINT without its ending and '
        'with .threshold.json)',
        type=file_named('.json'),
    )
    parser.add('--batch-size', 'images at a time', 32, type=positive)
    add_model_arguments(parser)
    args = parser.parse_args()
    if args.test and not args.unknown:
        parser.error('--test needs --unknown, images of unknown classes')
    if args.out is None and '://' in args.checkpoint:
        parser.error('weights from an address need --out')
    if args.out is None:
        args.out = Path(args.checkpoint).with_suffix('.threshold.json')
    check_file(parser, args.out)
    return args


def logits_of(inferencer, images, batch_size):
    """Images that can be read, and their class scores."""
    logits, unread = features.extract_logits(
        inferencer, images.paths, batch_size
    )
    return model_files.read_ones(images, unread), logits


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
    for name, function in open_set.SCORES.items():
        scores = {part: function(x) for part, x in logits.items()}
        threshold = open_set.fit_threshold(scores['known'], accept)
        row = dict(score=name, threshold=threshold)
        if 'unknown' in scores:
            test, unknown = scores['test'], scores['unknown']
            row.update(
                auroc=open_set.auroc(test, unknown),
                fpr95=open_set.false_positive_rate(test, unknown),
                known_lost=share(test < threshold),
                unknown_rejected=share(unknown < threshold),
            )
        rows.append(row)
    return rows


def share(flags):
    return float(flags.double().mean())


def accuracy(images, logits, classes):
    """Share of images that are named rightly; None without labels."""
    known = [i for i, name in enumerate(images.names) if name]
    if not known:
        return None
    labels = [classes.index(images.names[i]) for i in known]
    return float(evaluation.accuracy(logits[known], torch.tensor(labels)))


def run(args):
    inferencer = apis.TokenReductionInferencer(
        args.config, args.checkpoint, args.device, options=args.cfg_options
    )
    parts = dict(known=model_files.images_of(inferencer, args.known, 'val'))
    if args.unknown:
        parts['test'] = model_files.images_of(inferencer, args.test, 'test')
        parts['unknown'] = photographs.images_at(args.unknown)
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
    threshold = rejection.Threshold(
        args.score, value, rejection.fingerprint(inferencer.model)
    )
    rejection.write_threshold(threshold, args.out, **notes)
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
