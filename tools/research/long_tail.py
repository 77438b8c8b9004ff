# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Sample a long-tailed training list from an image folder.

    python tools/research/long_tail.py imagenet/train --least 5

The first class keeps all images, the last one ``--least``; the sizes between
them form a geometric series, as in ImageNet-LT. ``--seed`` determines class
order and images. Writes ``train_lt.txt`` into the folder, with lines ``path
label`` for ``CustomDataset``.
"""

import os
import random
from pathlib import Path

from mmclca import cli
from mmclca.datasets.photos.read import read_folder
from mmclca.utils.files import replace_text
from mmclca.utils.image_suffixes import IMAGE_SUFFIXES


def long_tail(images, least, seed=0):
    """Sample from each class; return a dict from class name to images."""
    draw = random.Random(seed)
    names = sorted(images)
    draw.shuffle(names)
    largest = max(map(len, images.values()))
    factor = (least / largest) ** (1 / max(1, len(names) - 1))
    sizes = {name: round(largest * factor**i) for i, name in enumerate(names)}
    return {
        name: sorted(draw.sample(paths, min(sizes[name], len(paths))))
        for name, paths in sorted(images.items())
    }


def main():
    parser = cli.Parser(description=__doc__.partition('\n')[0])
    parser.add('folder', 'dataset: one folder per class', type=Path)
    parser.add('--least', 'number of images of the smallest class', 5)
    parser.add('--seed', 'random seed', 0)
    args = parser.parse_args()
    photos = read_folder(args.folder, IMAGE_SUFFIXES)
    images = {name: [] for name in photos.classes}
    for path, name in zip(photos.paths, photos.names, strict=True):
        images[name].append(os.path.relpath(path, args.folder))
    kept = long_tail(images, args.least, args.seed).values()
    lines = [f'{x} {label}' for label, paths in enumerate(kept) for x in paths]
    path = args.folder / 'train_lt.txt'
    replace_text(path, '\n'.join(lines) + '\n')
    print(f'Saved      {path} ({len(lines)} of {len(photos)} images)')


if __name__ == '__main__':
    cli.run(main)
