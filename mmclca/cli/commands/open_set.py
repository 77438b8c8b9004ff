# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choose the score below which an image is of no known class.

python tools/open_set.py CKPT --known my_leaves/val.txt
python tools/predict.py CKPT IMAGES --reject CKPT.threshold.json

With images of unknown classes it also measures how well that works.
"""

import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

from mmclca.checkpoints.fitted import THRESHOLD, is_fitted
from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import (
    add_batch_size,
    add_checkpoint,
    add_model_arguments,
    check_file,
    file_named,
)

apis = lazy('mmclca.apis')
rejection = lazy('mmclca.apis.rejection')
threshold_choice = lazy('mmclca.apis.threshold_choice')
model_files = lazy('mmclca.cli.model_files')
photographs = lazy('mmclca.datasets.photographs')
pd = lazy('pandas')
torch = lazy('torch')

PLACE = 'a folder, or a .txt list of "path label" or "path"'


def parse_args():
    parser = Parser(
        description='Choose, on validation images of known classes, the score '
        'below which an image is of no known class. It is written beside the '
        'checkpoint, for predict.py --reject, or into the folder that fit '
        'wrote'
    )
    add_checkpoint(parser)
    parser.add(
        '--known PLACE',
        f'images to choose the threshold on: {PLACE} (default: the '
        'validation split of the config)',
    )
    parser.add(
        '--score',
        'what is compared with the threshold: max_softmax or energy',
        'max_softmax',
    )
    parser.add('--accept', 'share of the known images to accept', 0.95)
    parser.add('--unknown PLACE', 'images of unknown classes, to measure with')
    parser.add(
        '--test PLACE',
        'other images of known classes, to measure with (default: the test '
        'split of the config)',
    )
    parser.add(
        '--out',
        'file for the threshold (default: CHECKPOINT without its ending and '
        f'with .threshold.json, or {THRESHOLD} in the folder of fit)',
        type=file_named('.json'),
    )
    add_batch_size(parser)
    add_model_arguments(parser)
    args = parser.parse_args()
    if args.test and not args.unknown:
        parser.error('--test needs --unknown, images of unknown classes')
    if args.out is None and '://' in args.checkpoint:
        parser.error('weights from an address need --out')
    args.out = args.out or default_out(Path(args.checkpoint))
    check_file(parser, args.out)
    return args


def default_out(checkpoint):
    """Where the threshold goes unless it is told."""
    if is_fitted(checkpoint):
        return checkpoint / THRESHOLD
    return checkpoint.with_suffix('.threshold.json')


def run(args):
    inferencer = apis.TokenReductionInferencer(
        args.config, args.checkpoint, args.device, options=args.cfg_options
    )
    images_of = partial(model_files.images_of, inferencer)
    images = dict(known=images_of(args.known, 'val'))
    if args.unknown:
        images['test'] = images_of(args.test, 'test')
        images['unknown'] = photographs.images_at(args.unknown)
    threshold, notes = threshold_choice.choose_threshold(
        inferencer, images, args.score, args.accept, args.batch_size
    )
    rejection.write_threshold(threshold, args.out, **notes)
    return notes


def main(args):
    torch.manual_seed(0)
    with plain_errors(), redirect_stdout(sys.stderr):
        notes = run(args)
    counts = ', '.join(f'{n} {name}' for name, n in notes['images'].items())
    rows = pd.DataFrame(notes['scores'])
    print(f'images: {counts}')
    print(rows.to_string(index=False, float_format='{:.4f}'.format))
    print(args.out)
