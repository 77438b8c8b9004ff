# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classify images with a trained model. Results are printed to stdout,
progress, warnings and the summary to stderr.

``python tools/predict.py CKPT IMAGES``
"""

import os
import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmclca.checkpoints.model_folder import (
    ModelFolder,
    is_checkpoint,
    is_fitted,
)
from mmclca.errors import Error
from mmclca.utils.extras import require
from mmclca.utils.image_suffixes import PHOTO_SUFFIXES
from mmclca.utils.messages import print_safe, warn
from mmclca.utils.spreadsheets import NEEDED

from .. import model_files, plants
from ..arguments import check_file, file_named, positive, whole_number
from ..listing import Listing

LISTING = Listing('fit and use', 'classify new photos', 'inference')

SHOWN = 0.001  # minimum score to print a further class


@dataclass(frozen=True)
class Job:
    """Loaded model, images, paths of their pictures, answers, plants."""

    inferencer: Any
    paths: list[str]
    pictures: list
    answers: Any
    plants: list[str] | None


def add_arguments(parser):
    parser.share('checkpoint', '--config')
    images = 'files, folders or patterns such as "scans/*.tif"'
    parser.add('images', images, nargs='+')
    parser.add('--topk', 'classes per image', 5, type=positive)
    parser.share('--batch-size')
    parser.add(
        '--out',
        'results file: .csv, .xlsx for Excel in any language, or .json',
        type=file_named('.csv', '.xlsx', '.json'),
    )
    parser.flag(
        '--tokens', 'tokens per layer and GMACs in --out, also maps in .json'
    )
    pictures = 'folder for pictures with the remaining patches'
    parser.add('--show-dir DIR', pictures, type=Path)
    parser.add(
        '--sure LEVEL',
        'prediction sets that contain the class for LEVEL%% of photos',
        type=whole_number(50, 99),
    )
    parser.add(
        '--among FILE',
        'file with the classes that can occur here, one name per line',
        type=Path,
    )
    plants.add_plant_arguments(parser)
    parser.share('--threshold FILE', '--device', '--cfg-options')


def check(args):
    plants.check_plant_arguments(args)
    model_files.check_order(args.checkpoint, args.images)
    weights = [*filter(is_checkpoint, args.images)]
    if weights:
        raise Error(
            f'found {1 + len(weights)} checkpoints, expected one: '
            f'{" ".join([args.checkpoint, *weights])}; best_*.pth may match '
            'several, so write its full name'
        )
    if args.tokens and not args.out:
        raise Error('--tokens needs --out FILE')
    if args.sure and not is_fitted(args.checkpoint):
        raise Error(
            f'`sure` needs a model folder of fit, not {args.checkpoint}'
        )
    if args.out:
        check_file(args.out)
        if args.out.suffix.lower() == '.xlsx':
            require(NEEDED, extra='tables')


def prepare(args):
    """Load the model, and find the images."""
    check(args)
    with model_files.loading():
        from mmclca.apis import find_images, picture_paths
        from mmclca.apis.answers import prepare_answers
        from mmclca.apis.token_statistics import check_tokens
        from mmclca.visualization import check_reduces
    paths = find_images(args.images)
    if not paths:
        endings = ' '.join(PHOTO_SUFFIXES)
        raise Error(
            f'{" ".join(args.images)}: no image found; accepted file types: '
            f'{endings}'
        )
    names = plants.name_plants(args, paths)
    pictures = [None] * len(paths)
    if args.show_dir:
        pictures = picture_paths(paths, args.show_dir)
    with model_files.quiet():
        inferencer = model_files.load_inferencer(
            args, args.config, args.checkpoint, args.threshold
        )
    answers = prepare_answers(
        args.checkpoint, inferencer.classes, args.among, args.sure
    )
    if args.show_dir:
        check_reduces(inferencer.model.backbone)
    if args.tokens:
        check_tokens(inferencer.model)
    return Job(inferencer, paths, pictures, answers, names)


def predict(args, job, results):
    """Append predictions to ``results``, which an interrupted run keeps."""
    from mmclca.apis import draw_prediction
    from mmclca.fitting.new_photos import choose_references

    paths, inferencer = job.paths, job.inferencer
    stream = inferencer.stream(
        paths, args.batch_size, args.tokens, choose_references(inferencer)
    )
    answers = map(job.answers.apply, stream)
    for path, picture, result in zip(
        paths, job.pictures, answers, strict=True
    ):
        results.append(result)
        if picture and 'error' not in result:
            draw_prediction(inferencer, path, result, picture)


def write_results(args, classes, results, threshold):
    """Write ``--out`` and print the best classes per image or plant."""
    from mmclca.apis import best_classes, write_json, write_table

    if args.out and results:
        if args.out.suffix.lower() == '.json':
            write_json(results, args.out, classes, args.topk, args.tokens)
        else:
            write_table(results, args.out, classes, args.topk)
    for result in results:
        if 'error' in result:
            continue
        scores = [
            f'{best["name"]} {best["score"]:.1%}'
            for rank, best in enumerate(
                best_classes(result, classes, args.topk)
            )
            if rank == 0 or best['score'] >= SHOWN
        ]
        if result['known'] is False:
            scores[0] = f'nearest: {scores[0]}'
            scores.insert(0, describe_unknown(result, threshold))
        if args.sure:
            scores.insert(0, f'{args.sure}%: {result["sure_answer"]}')
        print_safe('  '.join([plants.describe_source(result), *scores]))


def describe_unknown(result, threshold):
    """Compare the score of a photo flagged as unknown with the threshold."""
    from mmclca.evaluation.open_set import NEAREST

    is_near = threshold.score == NEAREST
    name = 'similarity' if is_near else threshold.score
    comparison = f'{result["known_score"]:.3f} < {threshold.threshold:.3f}'
    return f'unknown? ({name} {comparison})'


def warn_of_photos(args, inferencer, results):
    """Warn of photos that a fitted model has seen, or that differ."""
    from mmclca.checkpoints.gate.photo_table import compute_sha256
    from mmclca.fitting.new_photos import describe_shift

    if not is_fitted(args.checkpoint):
        return
    folder = ModelFolder.open(args.checkpoint)
    digests = folder.read_used_digests()
    read = [result for result in results if 'error' not in result]
    new = [
        result
        for result in read
        if not (digests and os.path.isfile(result['image']))
        or compute_sha256(result['image']) not in digests
    ]
    if trained := len(read) - len(new):
        warn(
            f'{trained} of {len(results)} photos were in training: their '
            'results say nothing about new photos'
        )
    consequence = 'accuracy is probably lower; `survey` measures it'
    if shift := describe_shift(folder, inferencer, new, consequence):
        warn(shift)


def advise_test(args, classes):
    """Print the command that tests a model on a folder sorted by class."""
    from mmclca.fitting.sorted_folder import is_sorted

    if len(args.images) > 1 or not is_fitted(args.checkpoint):
        return
    (folder,) = args.images
    if is_sorted(folder, classes):
        arguments = shlex.join([args.checkpoint, folder])
        print_safe(
            f'{folder} is sorted by class: to measure the accuracy, run '
            f'python -m mmclca test {arguments}',
            file=sys.stderr,
        )


def main(args):
    results = []
    with redirect_stdout(sys.stderr):
        job = prepare(args)
    try:
        with redirect_stdout(sys.stderr):
            predict(args, job, results)
    except KeyboardInterrupt:
        done = f'Classified {len(results)} of {len(job.paths)} photos.'
        saved = f' Saved {args.out}' if args.out and results else ''
        raise KeyboardInterrupt(f'{done}{saved}') from None
    finally:
        classes = job.inferencer.classes
        threshold = job.inferencer.threshold
        rows = plants.combine_plants(args, results, job.plants, job.inferencer)
        write_results(args, classes, rows, threshold)
    from mmclca.apis.answers import summarize_sets
    from mmclca.apis.result_counts import describe_counts

    unread = [result for result in results if 'error' in result]
    for result in unread:
        warn(f'{result["image"]} is unreadable: {result["error"]}')
    warn_of_photos(args, job.inferencer, results)
    counts = describe_counts(rows, 'plants' if job.plants else 'photos')
    saved = f' Saved {args.out}' if args.out else ''
    print_safe(f'{counts}{saved}', file=sys.stderr)
    if args.sure:
        print_safe(summarize_sets(results, args.sure), file=sys.stderr)
    advise_test(args, classes)
    if unread:
        sys.exit(1)
