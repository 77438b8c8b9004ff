# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/retrieval.py`` does."""

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

from mmclca.apis.features import extract_features
from mmclca.apis.gallery import Gallery, read_gallery, write_gallery
from mmclca.apis.look_up import look_up
from mmclca.apis.output import open_text
from mmclca.apis.rejection import fingerprint
from mmclca.utils.csv_files import write_rows
from mmclca.utils.terminal import say
from mmclca.visualization.contact_sheet import contact_sheet
from mmclca.visualization.figure_files import check_picture

from .. import plain_errors
from ..model_files import images_of, load

SIDE = 160  # pixels of an image on the sheet


def embed(inferencer, images, stage, batch_size):
    """Images that can be read, and their features."""
    features, unread = extract_features(
        inferencer, images.paths, stage, batch_size
    )
    return images.without(unread), features


def make_gallery(args, inferencer):
    model = fingerprint(inferencer.model)
    if args.index:
        return read_gallery(args.index, model, args.stage)
    images = images_of(inferencer, args.gallery, 'train')
    found = embed(inferencer, images, args.stage, args.batch_size)
    gallery = Gallery(*found, model, args.stage)
    if args.save_index:
        write_gallery(gallery, args.save_index)
    return gallery


def make_queries(args, inferencer, gallery):
    if not args.queries and (args.gallery or args.index):
        return gallery.images, gallery.features
    images = images_of(inferencer, args.queries, 'test')
    return embed(inferencer, images, args.stage, args.batch_size)


def run(args):
    if args.sheet:
        check_picture(args.sheet)
    inferencer = load(
        args.config, args.checkpoint, args.cfg_options, args.device
    )
    gallery = make_gallery(args, inferencer)
    queries, features = make_queries(args, inferencer, gallery)
    entries, metrics = look_up(
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
    with open_text(path) as file:
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
    columns, frames, captions = {}, {}, {}
    for rank, entry in enumerate(spread, 1):
        heading = f'{rank}: {Path(entry["image"]).name}'  # names may repeat
        near = entry['neighbours'][:nearest]
        columns[heading] = [entry['image'], *(one['image'] for one in near)]
        frames[heading] = [None, *(same(entry, one) for one in near)]
        captions[heading] = [of_query(entry), *map(of_neighbour, near)]
    contact_sheet(columns, path, SIDE, frames=frames, captions=captions)


def of_query(entry):
    """Its class, or the one that is voted for."""
    if entry['name'] is not None:
        return entry['name']
    return f'vote: {entry["knn_class"]}' if 'knn_class' in entry else ''


def of_neighbour(one):
    return f'{one["similarity"]:.3f} {one["name"] or ""}'.strip()


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
