# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find similar images in a gallery by the features of a trained classifier.
Without --queries, each gallery image is compared with all other ones.

python tools/retrieval.py CKPT --gallery my_leaves/ --queries new_leaves/
"""

import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.messages import print_safe

from .. import model_files
from ..arguments import check_file, file_named, positive, whole
from ..listing import Listing

LISTING = Listing('models', 'find similar images in a gallery', 'retrieval')

LEVEL = ('mAP', 'knn_top1')  # measured at each level
PLACE = 'folder with class folders, or .txt list of "path label"'


def add_arguments(parser):
    parser.share('checkpoint', '--config')
    add_places(parser)
    parser.add(
        '--feature',
        'features: input of the last layer (pre_logits) or last CLS token '
        '(backbone)',
        'pre_logits',
        choices=['backbone', 'pre_logits'],
    )
    parser.add('--topk', 'similar images per query', 10, type=positive)
    votes = (
        'number of voting neighbors; 0 chooses 10 to 30 by cross-validation '
        '(default: 5)'
    )
    parser.add('--neighbors', votes, 5, type=whole)
    add_levels(parser)
    add_outputs(parser)
    parser.share('--device', '--cfg-options')


def add_places(parser):
    parser.add(
        '--gallery PLACE', f'gallery images: {PLACE} (default: train split)'
    )
    parser.share('--index FILE')
    parser.add(
        '--queries PLACE',
        'query images, class optional (default: gallery images if given, '
        'else test split)',
    )
    parser.share('--batch-size')


def add_levels(parser):
    parser.add(
        '--coarse TABLE',
        '.csv table with titles: classes, then one column per coarse level',
    )
    parser.add(
        '--ranking',
        'ranking: by cosine similarity, with predicted (conditional) or true '
        '(oracle) coarse class',
        'cosine',
        choices=['cosine', 'conditional', 'oracle'],
    )


def add_outputs(parser):
    parser.share('--out')
    parser.add(
        '--save-index FILE',
        'gallery features file to write, .safetensors',
        type=file_named('.safetensors'),
    )
    parser.add(
        '--sheet PICTURE',
        'picture with queries and similar images: blue frame same class, '
        'green same coarse class, orange other',
        type=Path,
    )
    spread = 'queries in the picture'
    parser.add('--sheet-queries', spread, 8, type=positive)
    nearest = 'similar images in the picture'
    parser.add('--sheet-nearest', nearest, 5, type=positive)


def check(args):
    from mmclca.visualization.figures import check_picture

    if args.index and (args.gallery or args.save_index):
        raise Error('--index excludes --gallery and --save-index')
    if args.ranking != 'cosine' and not args.coarse:
        raise Error(f'--ranking {args.ranking} needs --coarse TABLE')
    for path in filter(None, (args.out, args.save_index)):
        check_file(path)
    if args.sheet:
        check_picture(args.sheet)


def extract(args, inferencer, folder, split):
    """Return the readable images and their features."""
    from mmclca.apis.features import drop_unreadable, extract_features

    images = model_files.read_labeled_images(
        inferencer.model._config, folder, split
    )
    features, unread = extract_features(
        inferencer, images.paths, args.feature, args.batch_size
    )
    return drop_unreadable(images, unread), features


def make_gallery(args, inferencer):
    """Read the gallery from --index, or extract its features."""
    from mmclca.apis.gallery import Gallery, read_gallery, write_gallery
    from mmclca.evaluation.open_set import fingerprint

    model = fingerprint(inferencer.model)
    if args.index:
        return read_gallery(args.index, model, args.feature)
    images, features = extract(args, inferencer, args.gallery, 'train')
    gallery = Gallery(images, features, model, args.feature)
    if args.save_index:
        write_gallery(gallery, args.save_index)
    return gallery


def run(args):
    from mmclca.apis.neighbors import Search, look_up
    from mmclca.apis.output import draw_neighbors, write_neighbors
    from mmclca.datasets.levels import at_level, read_levels

    check(args)
    levels = read_levels(args.coarse) if args.coarse else {}
    inferencer = model_files.load_inferencer(
        args, args.config, args.checkpoint
    )
    gallery = make_gallery(args, inferencer)
    queries, features = gallery.images, gallery.features
    if args.queries or not (args.gallery or args.index):
        queries, features = extract(args, inferencer, args.queries, 'test')
    coarse = next(iter(levels.values()), {})
    search = Search(args.topk, args.neighbors, args.ranking, coarse)
    entries, metrics = look_up(gallery, queries, features, search)
    for level, coarse_classes in levels.items():
        _, at_this_level = look_up(
            replace(gallery, images=at_level(gallery.images, coarse_classes)),
            at_level(queries, coarse_classes),
            features,
            Search(topk=1, neighbors=args.neighbors),
        )
        metrics |= {
            f'{level} {name}': at_this_level[name]
            for name in LEVEL
            if name in at_this_level
        }
    if args.out:
        write_neighbors(entries, metrics, args.out)
    if args.sheet:
        draw_neighbors(
            entries, args.sheet, args.sheet_queries, args.sheet_nearest, coarse
        )
    return entries, metrics


def print_results(entries, metrics):
    for entry in entries:
        nearest = map(describe_neighbor, entry['neighbors'][:3])
        vote = ''
        if 'knn_class' in entry:
            vote = f'{entry["knn_class"]} {entry["knn_score"]:.3f}  '
        print_safe(f'{entry["image"]}  {vote}nearest: {", ".join(nearest)}')
    for name, value in metrics.items():
        is_rate = isinstance(value, float)
        print_safe(
            f'{name:10} ' + (f'{value:.2f}%' if is_rate else f'{value} images')
        )


def print_files(args):
    """Print the written files, and a command for the index."""
    files = args.out, args.save_index, args.sheet
    for file in filter(None, files):
        print_safe(f'Saved      {file}')
    if args.save_index:
        arguments = args.checkpoint, '--index', str(args.save_index)
        tool = 'python -m mmclca retrieval'
        print_safe(
            f'Next       {tool} {shlex.join(arguments)} --queries PHOTOS'
        )


def describe_neighbor(neighbor):
    """Describe a similar image: class, file name and similarity."""
    file = Path(neighbor['image']).name
    title = f'{neighbor["name"]} ({file})' if neighbor['name'] else file
    return f'{title} {neighbor["similarity"]:.3f}'


def main(args):
    with redirect_stdout(sys.stderr):
        entries, metrics = run(args)
    print_results(entries, metrics)
    print_files(args)
