# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find the images of a gallery that look like others.

python tools/retrieval.py CKPT --gallery my_leaves/ --queries new_leaves/
"""

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

from mmclca.utils.csv_files import write_rows
from mmclca.utils.lazy import lazy
from mmclca.utils.terminal import say

from .. import Parser, plain_errors
from ..arguments import (
    add_config_argument,
    add_model_arguments,
    check_file,
    file_named,
    positive,
)
from ..choices import STAGES

apis = lazy('mmclca.apis')
apis_features = lazy('mmclca.apis.features')
apis_gallery = lazy('mmclca.apis.gallery')
output = lazy('mmclca.apis.output')
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
    parser.add('checkpoint', 'weights of a classifier')
    add_config_argument(parser)
    add_places(parser)
    parser.add(
        '--stage',
        'whose output: pre_logits is what the last layer of the head reads, '
        'with CLA its aggregated features; backbone the last CLS',
        'pre_logits',
        choices=STAGES,
    )
    parser.add('--topk', 'images to name', 10, type=positive)
    votes = 'images that vote on the class'
    parser.add('--neighbours', votes, 5, type=positive)
    add_outputs(parser)
    add_model_arguments(parser)
    args = parser.parse_args()
    check(parser, args)
    return args


def add_places(parser):
    parser.add(
        '--gallery',
        f'images to find: {PLACE} (default: the training split of the config)',
        metavar='PLACE',
    )
    parser.add(
        '--index',
        'a gallery that --save-index wrote, in place of --gallery',
        metavar='FILE',
    )
    parser.add(
        '--queries',
        'images to look for, as for --gallery; they need no class (default: '
        'with --gallery or --index, those of the gallery; else the test '
        'split of the config)',
        metavar='PLACE',
    )
    parser.add('--batch-size', 'images at a time', 32, type=positive)


def add_outputs(parser):
    out = 'write the results to a .csv or .json file'
    parser.add('--out', out, type=file_named('.csv', '.json'))
    parser.add(
        '--save-index',
        'write the features of the gallery to a .safetensors file',
        type=file_named('.safetensors'),
        metavar='FILE',
    )
    parser.add(
        '--sheet',
        'draw queries, each with its nearest images below, in blue frames '
        'where they are of its class (if it has none, of the one that is '
        'voted for), else in orange ones',
        type=Path,
        metavar='PICTURE',
    )
    spread = 'how many to draw, evenly spread over all'
    parser.add('--sheet-queries', spread, 8, type=positive)
    nearest = 'nearest images to draw'
    parser.add('--sheet-nearest', nearest, 5, type=positive)


def check(parser, args):
    if args.index and (args.gallery or args.save_index):
        parser.error('--index is a gallery already: leave out the other')
    for path in filter(None, (args.out, args.save_index)):
        check_file(parser, path)


def embed(inferencer, images, stage, batch_size):
    """Images that can be read, and their features."""
    features, unread = apis_features.extract_features(
        inferencer, images.paths, stage, batch_size
    )
    return model_files.read_ones(images, unread), features


def make_gallery(args, inferencer):
    model = rejection.fingerprint(inferencer.model)
    if args.index:
        return apis_gallery.read_gallery(args.index, model, args.stage)
    images = model_files.images_of(inferencer, args.gallery, 'train')
    found = embed(inferencer, images, args.stage, args.batch_size)
    gallery = apis_gallery.Gallery(*found, model, args.stage)
    if args.save_index:
        apis_gallery.write_gallery(gallery, args.save_index)
    return gallery


def make_queries(args, inferencer, gallery):
    if not args.queries and (args.gallery or args.index):
        return gallery.images, gallery.features
    images = model_files.images_of(inferencer, args.queries, 'test')
    return embed(inferencer, images, args.stage, args.batch_size)


def run(args):
    if args.sheet:
        figures.check_picture(args.sheet)
    inferencer = apis.TokenReductionInferencer(
        args.config, args.checkpoint, args.device, options=args.cfg_options
    )
    gallery = make_gallery(args, inferencer)
    queries, features = make_queries(args, inferencer, gallery)
    entries, metrics = apis_gallery.look_up(
        gallery, queries, features, args.topk, args.neighbours
    )
    if args.out:
        write = write_csv if args.out.suffix == '.csv' else write_json
        write(entries, metrics, args.out)
    if args.sheet:
        draw(entries, args.sheet, args.sheet_queries, args.sheet_nearest)
    return entries, metrics


def write_json(entries, metrics, path):
    content = dict(metrics=metrics, queries=entries)
    with output.open_text(path) as file:
        json.dump(content, file, indent=1, ensure_ascii=False)


def write_csv(entries, metrics, path):
    ranks = range(1, 1 + max(len(e['neighbours']) for e in entries))
    facts = ('image', 'name', 'knn_class', 'knn_score', 'average_precision')
    keys = ('image', 'name', 'similarity')
    rows = [[*facts, *(f'{key}_{rank}' for rank in ranks for key in keys)]]
    for entry in entries:
        near = [one[key] for one in entry['neighbours'] for key in keys]
        rows.append([*(entry.get(fact) for fact in facts), *near])
    write_rows(path, rows)


def draw(entries, path, number, nearest):
    """Queries in the first row, what they find below."""
    number = min(number, len(entries))
    spread = [entries[i * len(entries) // number] for i in range(number)]
    columns = {}
    for rank, entry in enumerate(spread, 1):
        heading = f'{rank}: {Path(entry["image"]).name}'  # names may repeat
        near = entry['neighbours'][:nearest]
        columns[heading] = [
            figures.photograph(entry['image'], note=of_query(entry)),
            *(neighbour(entry, one) for one in near),
        ]
    figures.contact_sheet(columns, path)


def of_query(entry):
    """Its class, or the one that is voted for."""
    if entry['name'] is not None:
        return entry['name']
    return f'vote: {entry["knn_class"]}' if 'knn_class' in entry else ''


def neighbour(entry, one):
    """The picture of an image found, in the colour of right or wrong."""
    return figures.photograph(
        one['image'],
        note=f'{one["similarity"]:.3f} {one["name"] or ""}'.strip(),
        frame=figures.FRAMES[same(entry, one)],
    )


def same(entry, other):
    """Whether an image found is of the class of the query, or of the one
    that is voted for; None where there is none."""
    name = entry['name'] or entry.get('knn_class')
    if name is None or other['name'] is None:
        return None
    return name == other['name']


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
