# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Name what is on images: ``python tools/predict.py CONFIG CKPT IMAGES``."""

import argparse
import csv
import glob
import json
import sys
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path

import cv2
import mmcv
import torch
from mmengine.config import Config
from mmpretrain.utils import progress
from rich.console import Console
from rich.progress import track

from mmclca.apis import load_inferencer
from mmclca.datasets.image_files import IMAGE_SUFFIXES
from mmclca.utils.command_line import add_cfg_options


def parse_args():
    parser = argparse.ArgumentParser(
        description='Predict the classes of images with a trained model. '
        'Results go to stdout, progress and what could not be read to stderr'
    )
    parser.add_argument('config', help='path of the config')
    parser.add_argument('checkpoint', help='path or URL of the weights')
    parser.add_argument(
        'images',
        nargs='+',
        help='files, folders (with all below them) or patterns such as '
        '"scans/*.tif"',
    )
    parser.add_argument(
        '--topk', type=int, default=5, help='classes to name for each image'
    )
    parser.add_argument(
        '--batch-size', type=int, default=32, help='images at a time'
    )
    parser.add_argument(
        '--device',
        default='cuda' if torch.cuda.is_available() else 'cpu',
        help='where to run the model (default here: %(default)s)',
    )
    parser.add_argument(
        '--out', type=Path, help='write the results to a .csv or .json file'
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    if args.topk < 1 or args.batch_size < 1:
        parser.error('--topk and --batch-size must be 1 or more')
    if args.out and args.out.suffix not in ('.csv', '.json'):
        parser.error(f'--out {args.out}: the name must end in .csv or .json')
    return args


def find_images(places):
    """Paths of the images at files, folders and patterns, each once.

    A path that leads nowhere is kept, to be reported with the unreadable.
    """
    paths = {}
    for place in places:
        found = [place]
        if not Path(place).exists():
            found = sorted(glob.glob(place, recursive=True)) or found
        for path in found:
            paths.update(dict.fromkeys(images_at(path)))
    return list(paths)


def images_at(path):
    """The images below a folder; anything else as it is."""
    if not Path(path).is_dir():
        return [path]
    below = sorted(Path(path).rglob('*'))
    return [str(p) for p in below if p.suffix.lower() in IMAGE_SUFFIXES]


def read_batches(paths, batch_size):
    """Yield batches of images by path, None for what cannot be read."""
    paths = iter(paths)
    while batch := list(islice(paths, batch_size)):
        yield {path: read(path) for path in batch}


def read(path):
    try:
        return mmcv.imread(path)
    except (OSError, cv2.error):
        return None


def predict(inferencer, images, topk):
    """The best classes of some images, a list of images by path."""
    if not images:
        return []
    answers = inferencer(list(images.values()), batch_size=len(images))
    return [
        dict(image=path, classes=best(answer, inferencer.classes, topk))
        for path, answer in zip(images, answers, strict=True)
    ]


def best(answer, names, topk):
    scores = answer['pred_scores']
    return [
        dict(label=int(i), name=names[i], score=round(float(scores[i]), 6))
        for i in (-scores).argsort()[:topk]
    ]


def show(result):
    named = [f'{c["score"]:.3f} {c["name"]}' for c in result['classes']]
    print(f'{result["image"]}: {", ".join(named)}')


def write(results, out):
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open('w', encoding='utf-8', newline='') as file:
        if out.suffix == '.csv':
            csv.writer(file).writerows(csv_rows(results))
        else:
            json.dump(results, file, indent=1, ensure_ascii=False)


def csv_rows(results):
    """A row an image: its path, then the classes by rank."""
    keys = ('label', 'name', 'score')
    ranks = range(1, 1 + len(results[0]['classes']) if results else 1)
    yield ['image', *(f'{key}_{rank}' for rank in ranks for key in keys)]
    for result in results:
        yield [
            result['image'],
            *(c[k] for c in result['classes'] for k in keys),
        ]


def complain(path):
    """A path and why there is no image at it."""
    exists = Path(path).exists()
    return f'{path}: {"no image" if exists else "no such file or folder"}'


def predict_all(args, paths, results, unreadable):
    """Fill both lists, so that an interrupted run keeps what it has."""
    cfg = Config.fromfile(args.config)
    cfg.merge_from_dict(args.cfg_options)
    inferencer = load_inferencer(cfg, args.checkpoint, args.device)
    progress.disable_progress_bar = True  # one for each batch
    batches = track(
        read_batches(paths, args.batch_size),
        total=-(-len(paths) // args.batch_size),
        description=f'{len(paths)} images',
        console=Console(stderr=True),
    )
    for batch in batches:
        images = {k: v for k, v in batch.items() if v is not None}
        unreadable += [path for path in batch if path not in images]
        results += predict(inferencer, images, args.topk)


def main():
    args = parse_args()
    paths = find_images(args.images)
    if not paths:
        endings = ' '.join(IMAGE_SUFFIXES)
        sys.exit(f'no image ({endings}) in {" ".join(args.images)}')
    results, unreadable = [], []
    try:
        with redirect_stdout(sys.stderr):  # what mmengine logs
            predict_all(args, paths, results, unreadable)
    finally:
        for result in results:
            show(result)
        if args.out and results:
            write(results, args.out)
    if unreadable:
        sys.exit('not read:\n  ' + '\n  '.join(map(complain, unreadable)))


if __name__ == '__main__':
    main()
