# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choose the score threshold below which an image is flagged as unknown, on
validation images of known classes. It is written next to the checkpoint, for
predict.py --threshold, or into the model folder.

python tools/open_set.py CKPT --known my_leaves/val.txt
python tools/predict.py CKPT IMAGES --threshold CKPT.threshold.json

With images of unknown classes it also measures the detection.
"""

import shlex
import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

from mmclca.checkpoints.model_folder import (
    THRESHOLD,
    is_fitted,
    prepare_writing,
)
from mmclca.errors import Error
from mmclca.utils.messages import print_safe

from .. import model_files
from ..arguments import check_file, file_named
from ..listing import Listing

LISTING = Listing(
    'models', 'choose a threshold for unknown classes', 'unknown_classes'
)

PLACE = 'folder or .txt list'

TITLES = dict(known_lost='known flagged', unknown_rejected='unknown flagged')


def add_arguments(parser):
    parser.share('checkpoint', '--config')
    parser.add(
        '--known PLACE',
        f'images of known classes: {PLACE} (default: val split)',
    )
    parser.add(
        '--score',
        'max_softmax, energy or nearest (default: max_softmax; nearest for '
        'fitted models)',
    )
    parser.add('--accept', 'share of known images to accept', 0.95)
    parser.add(
        '--unknown PLACE',
        'images of unknown classes, to measure the detection',
    )
    parser.add(
        '--test PLACE',
        'other images of known classes, to measure the detection (default: '
        'test split)',
    )
    parser.add(
        '--out',
        'threshold file (default: CHECKPOINT with ending .threshold.json, or '
        f'MODEL/{THRESHOLD})',
        type=file_named('.json'),
    )
    parser.share('--batch-size', '--device', '--cfg-options')


def default_out(checkpoint):
    """Return the threshold file next to a checkpoint or in a model folder."""
    if '://' in checkpoint:
        raise Error(f'{checkpoint} is a URL: add --out FILE.json')
    if is_fitted(checkpoint):
        prepare_writing(Path(checkpoint))
        return Path(checkpoint, THRESHOLD)
    return Path(checkpoint).with_suffix('.threshold.json')


def run(args):
    from mmclca.apis.threshold_choice import choose_threshold
    from mmclca.evaluation.open_set import write_threshold

    if args.test and not args.unknown:
        raise Error('--test needs --unknown (images of unknown classes)')
    out = args.out or default_out(args.checkpoint)
    check_file(out)
    inferencer = model_files.load_inferencer(
        args, args.config, args.checkpoint
    )
    read_images = partial(
        model_files.read_labeled_images, inferencer.model._config
    )
    images = dict(known=read_images(args.known, 'val'))
    if args.unknown:
        images['test'] = read_images(args.test, 'test')
        images['unknown'] = read_images(args.unknown, 'test')
    choice = choose_threshold(
        inferencer, images, args.score, args.accept, args.batch_size
    )
    write_threshold(out, inferencer.model, **choice)
    return choice, out


def format_table(rows):
    """Return right-aligned lines of a table, with titles."""
    cells = [[TITLES.get(name, name) for name in rows[0]]]
    for row in rows:
        cells.append(
            [
                f'{x:.4f}' if isinstance(x, float) else str(x)
                for x in row.values()
            ]
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        ' '.join(x.rjust(n) for x, n in zip(line, widths, strict=True))
        for line in cells
    ]


def main(args):
    import torch

    torch.manual_seed(0)
    with redirect_stdout(sys.stderr):
        notes, out = run(args)
    counts = ', '.join(f'{n} {name}' for name, n in notes['images'].items())
    share = f'accepts {100 * args.accept:g}% of the known images'
    print(f'Data       {counts} images')
    print(f'Threshold  {notes["threshold"]:.4f} ({notes["score"]}, {share})')
    print('\n'.join(format_table(notes['scores'])))
    in_folder = is_fitted(args.checkpoint) and not args.out
    arguments = ['PHOTOS', *['--threshold', str(out)] * (not in_folder)]
    command = shlex.join(['predict', args.checkpoint, *arguments])
    print_safe(f'Saved      {out}', f'Next       python -m mmclca {command}')
