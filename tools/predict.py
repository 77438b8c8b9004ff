# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Name what is on images: ``python tools/predict.py CKPT IMAGES``."""

import argparse
import sys
from contextlib import redirect_stdout
from pathlib import Path

from mmclca.apis import (
    best_classes,
    draw_prediction,
    find_images,
    picture_paths,
    write_csv,
    write_json,
)
from mmclca.apis.pictures import check_reduces
from mmclca.apis.stored import is_checkpoint
from mmclca.datasets.image_files import IMAGE_SUFFIXES
from mmclca.utils.checkpoint_error import CheckpointError
from mmclca.utils.command_line import check_file
from mmclca.visualization.model_files import (
    add_config_argument,
    add_model_arguments,
    load,
)


def parse_args():
    parser = argparse.ArgumentParser(
        description='Predict the classes of images with a trained model. '
        'Results go to stdout, progress and what could not be read to stderr'
    )
    parser.add_argument(
        'checkpoint',
        help='path or URL of the weights; the config and the class names are '
        'stored in it',
    )
    parser.add_argument(
        'images',
        nargs='+',
        help='files, folders (with all below them) or patterns such as '
        '"scans/*.tif"',
    )
    add_config_argument(parser)
    parser.add_argument(
        '--topk', type=int, default=5, help='classes to name for each image'
    )
    parser.add_argument(
        '--batch-size', type=int, default=32, help='images at a time'
    )
    parser.add_argument(
        '--out', type=Path, help='write the results to a .csv or .json file'
    )
    parser.add_argument(
        '--tokens',
        action='store_true',
        help='write the tokens of each layer and the GMACs of each image too, '
        'to .json also the maps of kept patches, of attention and attribution',
    )
    parser.add_argument(
        '--pictures',
        type=Path,
        metavar='DIR',
        help='draw what is left of each image stage by stage, with its class',
    )
    parser.add_argument(
        '--reject',
        type=Path,
        metavar='THRESHOLD.json',
        help='file of open_set.py: images whose score is below its threshold '
        'are named unknown',
    )
    add_model_arguments(parser)
    args = parser.parse_args()
    check(parser, args)
    return args


def check(parser, args):
    if args.checkpoint.endswith('.py'):
        checkpoint, *images = args.images
        images = ' '.join(images) or 'IMAGES'
        parser.error(
            'the checkpoint comes first, and holds the config: '
            f'predict.py {checkpoint} {images}. For another config: '
            f'predict.py {checkpoint} {images} --config {args.checkpoint}'
        )
    weights = [name for name in args.images if is_checkpoint(name)]
    if weights:
        parser.error(
            f'{1 + len(weights)} checkpoints: '
            f'{" ".join([args.checkpoint, *weights])}. best_*.pth names '
            'several after a second run into one folder: write the one out'
        )
    if args.topk < 1 or args.batch_size < 1:
        parser.error('--topk and --batch-size must be 1 or more')
    if args.tokens and not args.out:
        parser.error('--tokens needs --out, the file to write them to')
    if args.out and args.out.suffix not in ('.csv', '.json'):
        parser.error(f'--out {args.out}: the name must end in .csv or .json')
    if args.out:
        check_file(parser, args.out)


def load_checked(args):
    inferencer = load(
        args.config,
        args.checkpoint,
        args.cfg_options,
        args.device,
        args.reject,
    )
    if args.pictures:
        check_reduces(inferencer)
    if args.tokens:
        inferencer.check_tokens()
    return inferencer


def prepare(args, paths):
    """The model, and where the picture of each image goes, if anywhere."""
    try:
        pictures = [None] * len(paths)
        if args.pictures:
            pictures = picture_paths(paths, args.pictures)
        return load_checked(args), pictures
    except (CheckpointError, FileNotFoundError, ValueError) as error:
        sys.exit(f'{error}')


def predict(args, inferencer, paths, pictures, results):
    """Fill the list, so that an interrupted run keeps what it has."""
    answers = inferencer.stream(paths, args.batch_size, args.tokens)
    for path, picture, result in zip(paths, pictures, answers, strict=True):
        results.append(result)
        if picture and 'error' not in result:
            draw_prediction(inferencer, path, result, picture)


def printable(text):
    """A text with marks for bytes of a file's name that are no UTF-8."""
    return text.encode('utf-8', 'surrogateescape').decode('utf-8', 'replace')


def show(results, classes, topk):
    for result in results:
        best = best_classes(result, classes, topk)
        named = [f'{one["score"]:.3f} {one["name"]}' for one in best]
        if result.get('pred_label') == -1:
            known = f'(score {result["known_score"]:.3f}); nearest'
            named = [f'{result["pred_class"]} {known} {", ".join(named)}']
        if named:
            print(printable(f'{result["image"]}: {", ".join(named)}'))


def write(results, args, classes):
    if args.out.suffix == '.csv':
        write_csv(results, args.out, classes, args.topk)
    else:
        write_json(results, args.out, classes, args.topk, args.tokens)


def main():
    args = parse_args()
    paths = find_images(args.images)
    if not paths:
        endings = ' '.join(IMAGE_SUFFIXES)
        sys.exit(f'no image ({endings}) in {" ".join(args.images)}')
    results = []
    with redirect_stdout(sys.stderr):  # what mmengine logs
        inferencer, pictures = prepare(args, paths)
    try:
        with redirect_stdout(sys.stderr):
            predict(args, inferencer, paths, pictures, results)
    finally:
        if args.out and results:
            write(results, args, inferencer.classes)
        show(results, inferencer.classes, args.topk)
    unread = [result for result in results if 'error' in result]
    if unread:
        lines = [f'\n  {one["image"]}: {one["error"]}' for one in unread]
        sys.exit(printable(f'not read:{"".join(lines)}'))


if __name__ == '__main__':
    main()
