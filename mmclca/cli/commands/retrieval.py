# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find the images of a gallery that look like others.

python tools/retrieval.py CKPT --gallery my_leaves/ --queries new_leaves/
"""

import sys
from contextlib import redirect_stdout
from pathlib import Path

from mmclca.utils.lazy import lazy
from mmclca.utils.terminal import say

from .. import Parser, plain_errors
from ..arguments import (
    add_batch_size,
    add_checkpoint,
    add_model_arguments,
    add_table,
    check_file,
    file_named,
    positive,
)

apis = lazy('mmclca.apis')
features = lazy('mmclca.apis.features')
galleries = lazy('mmclca.apis.gallery')
neighbours = lazy('mmclca.apis.neighbours')
rejection = lazy('mmclca.apis.rejection')
model_files = lazy('mmclca.cli.model_files')
figures = lazy('mmclca.visualization.figures')

PLACE = 'a folder with a folder a class, or a .txt list of "path label"'


def parse_args():
    parser = Parser(
        description='Find the images of a gallery that look like others, by '
        'the features of a trained classifier. An image never finds itself: '
        'without --queries, the images of the gallery look for each other'
    )
    add_checkpoint(parser)
    add_places(parser)
    parser.add(
        '--stage',
        'whose output: pre_logits is what the last layer of the head reads, '
        'with CLA its aggregated features; backbone the last CLS',
        'pre_logits',
        choices=['backbone', 'pre_logits'],
    )
    parser.add('--topk', 'images to name', 10, type=positive)
    votes = 'images that vote on the class'
    parser.add('--neighbours', votes, 5, type=positive)
    add_outputs(parser)
    add_model_arguments(parser)
    args = parser.parse_args()
    if args.index and (args.gallery or args.save_index):
        parser.error('--index is a gallery already: leave out the other')
    for path in filter(None, (args.out, args.save_index)):
        check_file(parser, path)
    return args


def add_places(parser):
    parser.add(
        '--gallery PLACE',
        f'images to find: {PLACE} (default: the training split of the config)',
    )
    parser.add(
        '--index FILE',
        'a gallery that --save-index wrote, in place of --gallery',
    )
    parser.add(
        '--queries PLACE',
        'images to look for, as for --gallery; they need no class (default: '
        'with --gallery or --index, those of the gallery; else the test '
        'split of the config)',
    )
    add_batch_size(parser)


def add_outputs(parser):
    add_table(parser)
    parser.add(
        '--save-index FILE',
        'write the features of the gallery to a .safetensors file',
        type=file_named('.safetensors'),
    )
    parser.add(
        '--sheet PICTURE',
        'draw queries, each with its nearest images below, in blue frames '
        'where they are of its class (if it has none, of the one that is '
        'voted for), else in orange ones',
        type=Path,
    )
    spread = 'how many to draw, evenly spread over all'
    parser.add('--sheet-queries', spread, 8, type=positive)
    nearest = 'nearest images to draw'
    parser.add('--sheet-nearest', nearest, 5, type=positive)


def embed(args, inferencer, place, split):
    """Images that can be read, and their features."""
    images = model_files.images_of(inferencer, place, split)
    found, unread = features.extract_features(
        inferencer, images.paths, args.stage, args.batch_size
    )
    return features.read_ones(images, unread), found


def make_gallery(args, inferencer):
    model = rejection.fingerprint(inferencer.model)
    if args.index:
        return galleries.read_gallery(args.index, model, args.stage)
    found = embed(args, inferencer, args.gallery, 'train')
    gallery = galleries.Gallery(*found, model, args.stage)
    if args.save_index:
        galleries.write_gallery(gallery, args.save_index)
    return gallery


def run(args):
    if args.sheet:
        figures.check_picture(args.sheet)
    inferencer = apis.TokenReductionInferencer(
        args.config, args.checkpoint, args.device, options=args.cfg_options
    )
    gallery = make_gallery(args, inferencer)
    queries = gallery.images, gallery.features
    if args.queries or not (args.gallery or args.index):
        queries = embed(args, inferencer, args.queries, 'test')
    entries, metrics = galleries.look_up(
        gallery, *queries, args.topk, args.neighbours
    )
    if args.out:
        neighbours.write_neighbours(entries, metrics, args.out)
    if args.sheet:
        neighbours.draw_neighbours(
            entries, args.sheet, args.sheet_queries, args.sheet_nearest
        )
    return entries, metrics


def show(entries, metrics):
    for entry in entries:
        near = entry['neighbours'][:3]
        found = [f'{one["similarity"]:.3f} {title(one)}' for one in near]
        said = ''
        if 'knn_class' in entry:
            said = f'{entry["knn_score"]:.3f} {entry["knn_class"]}; '
        say(f'{entry["image"]}: {said}{", ".join(found)}')
    for name, value in metrics.items():
        is_rate = isinstance(value, float)
        print(f'{name}: {value:.2f} %' if is_rate else f'{name}: {value}')


def title(neighbour):
    """Its class and file, as it is told on a line."""
    file = Path(neighbour['image']).name
    return f'{neighbour["name"]} ({file})' if neighbour['name'] else file


def main(args):
    with plain_errors(), redirect_stdout(sys.stderr):
        entries, metrics = run(args)
    show(entries, metrics)
