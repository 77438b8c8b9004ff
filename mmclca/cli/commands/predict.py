# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Predict the classes of images with a trained model. Results go to stdout,
progress and what could not be read to stderr

``python tools/predict.py CKPT IMAGES``
"""

import sys
from contextlib import redirect_stdout
from pathlib import Path

from mmclca.checkpoints.fitted import is_checkpoint
from mmclca.utils.image_suffixes import PHOTOGRAPH_SUFFIXES
from mmclca.utils.messages import printable, say

from .. import Parser, model_files, plain_errors
from ..arguments import check_file, positive
from ..packages import apis, visualization


def parse_args():
    parser = Parser(__doc__)
    parser.share('checkpoint', '--config')
    images = 'files, folders, or patterns such as "scans/*.tif"'
    parser.add('images', images, nargs='+')
    parser.add('--topk', 'classes to name for each image', 5, type=positive)
    parser.share('--batch-size', '--out')
    parser.flag(
        '--tokens',
        'add tokens per layer and GMACs to --out, to .json also maps',
    )
    pictures = 'folder for a drawing of the kept patches of each image'
    parser.add('--pictures DIR', pictures, type=Path)
    parser.share('--reject THRESHOLD.json', '--device', '--cfg-options')
    return parser.parse_args()


def check(args):
    model_files.check_order(args.checkpoint, args.images)
    weights = [*filter(is_checkpoint, args.images)]
    if weights:
        raise ValueError(
            f'{1 + len(weights)} checkpoints: '
            f'{" ".join([args.checkpoint, *weights])}. best_*.pth names '
            'several after a second run into one folder: write the one out'
        )
    if args.tokens and not args.out:
        raise ValueError('--tokens needs --out, the file to write them to')
    if args.out:
        check_file(args.out)


@plain_errors()
def prepare(args):
    """Load the model; find images, and where the picture of each goes."""
    check(args)
    paths = apis.find_images(args.images)
    if not paths:
        endings = ' '.join(PHOTOGRAPH_SUFFIXES)
        raise ValueError(f'no image ({endings}) in {" ".join(args.images)}')
    pictures = [None] * len(paths)
    if args.pictures:
        pictures = apis.picture_paths(paths, args.pictures)
    found = model_files.load(args, args.config, args.checkpoint, args.reject)
    if args.pictures:
        visualization.check_reduces(found.model.backbone)
    if args.tokens:
        apis.token_facts.check_tokens(found.model)
    return found, paths, pictures


@plain_errors()
def predict(args, inferencer, paths, pictures, results):
    """Fill the list, so that an interrupted run keeps what it has."""
    answers = inferencer.stream(paths, args.batch_size, args.tokens)
    for path, picture, result in zip(paths, pictures, answers, strict=True):
        results.append(result)
        if picture and 'error' not in result:
            apis.draw_prediction(inferencer, path, result, picture)


def finish(args, classes, results):
    """Write the file, and print what is on each image."""
    if args.out and results:
        table = results, args.out, classes, args.topk
        if args.out.suffix == '.csv':
            apis.write_csv(*table)
        else:
            apis.write_json(*table, args.tokens)
    for result in results:
        best = apis.best_classes(result, classes, args.topk)
        line = ', '.join(f'{one["score"]:.3f} {one["name"]}' for one in best)
        if best and result['known'] is False:
            line += f'; not known (score {result["known_score"]:.3f})'
        if best:
            say(f'{result["image"]}: {line}')


def main(args):
    results = []
    with redirect_stdout(sys.stderr):  # what mmengine logs
        inferencer, paths, pictures = prepare(args)
    try:
        with redirect_stdout(sys.stderr):
            predict(args, inferencer, paths, pictures, results)
    except KeyboardInterrupt:
        place = args.out if args.out and results else 'standard output'
        raise KeyboardInterrupt(
            f'{len(results)} of {len(paths)} images are written to {place}'
        ) from None
    finally:
        finish(args, inferencer.classes, results)
    unread = [result for result in results if 'error' in result]
    if unread:
        lines = [f'  {one["image"]}: {one["error"]}' for one in unread]
        sys.exit('\n'.join(map(printable, ['not read:', *lines])))
