# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/predict.py`` does."""

import sys
from contextlib import redirect_stdout

from mmclca.apis import (
    best_classes,
    draw_prediction,
    find_images,
    picture_paths,
    write_csv,
    write_json,
)
from mmclca.apis.token_facts import check_tokens
from mmclca.utils.image_suffixes import PHOTOGRAPH_SUFFIXES
from mmclca.utils.terminal import printable, say
from mmclca.visualization import check_reduces

from .. import Mistake, plain_errors
from ..model_files import load


@plain_errors()
def prepare(args, paths):
    """The model, and where the picture of each image goes, if anywhere."""
    pictures = [None] * len(paths)
    if args.pictures:
        pictures = picture_paths(paths, args.pictures)
    options, device = args.cfg_options, args.device
    found = load(args.config, args.checkpoint, options, device, args.reject)
    if args.pictures:
        check_reduces(found.model.backbone)
    if args.tokens:
        check_tokens(found.model)
    return found, pictures


def predict(args, inferencer, paths, pictures, results):
    """Fill the list, so that an interrupted run keeps what it has."""
    answers = inferencer.stream(paths, args.batch_size, args.tokens)
    for path, picture, result in zip(paths, pictures, answers, strict=True):
        results.append(result)
        if picture and 'error' not in result:
            draw_prediction(inferencer, path, result, picture)


def show(results, classes, topk):
    for result in results:
        best = best_classes(result, classes, topk)
        named = [f'{one["score"]:.3f} {one["name"]}' for one in best]
        if named:
            line = f'{result["image"]}: {", ".join(named)}'
            if result['known'] is False:
                line += f'; not known (score {result["known_score"]:.3f})'
            say(line)


def write(results, args, classes):
    if args.out.suffix == '.csv':
        write_csv(results, args.out, classes, args.topk)
    else:
        write_json(results, args.out, classes, args.topk, args.tokens)


def written(results, paths, out):
    """What is left of an interrupted run, in words."""
    place = out if out and results else 'standard output'
    return f'{len(results)} of {len(paths)} images are written to {place}'


def main(args):
    paths = find_images(args.images)
    if not paths:
        endings = ' '.join(PHOTOGRAPH_SUFFIXES)
        raise Mistake(f'no image ({endings}) in {" ".join(args.images)}')
    results = []
    with redirect_stdout(sys.stderr):  # what mmengine logs
        inferencer, pictures = prepare(args, paths)
    try:
        with redirect_stdout(sys.stderr), plain_errors():
            predict(args, inferencer, paths, pictures, results)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(written(results, paths, args.out)) from None
    finally:
        if args.out and results:
            write(results, args, inferencer.classes)
        show(results, inferencer.classes, args.topk)
    unread = [result for result in results if 'error' in result]
    if unread:
        lines = [f'  {one["image"]}: {one["error"]}' for one in unread]
        sys.exit('\n'.join(map(printable, ['not read:', *lines])))
