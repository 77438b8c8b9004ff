# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Generate leaves of cultivars with equal color and size that differ in
outline, teeth and veins.

python tools/dataset_converters/synthetic_leaves.py data/synthetic_leaves

The same options give identical files with any number of jobs.
"""

from collections import Counter
from pathlib import Path

from mmclca.utils.messages import print_safe

from ..arguments import positive
from ..listing import Listing

LISTING = Listing('data', 'generate a dataset of synthetic leaves')


def add_arguments(parser):
    parser.add('out', 'output folder', type=Path)
    parser.add('--classes', 'cultivars (classes)', 8)
    parser.add('--species', 'species, listed in levels.csv', 1, type=positive)
    parser.add('--per-class', 'images per class over all splits', 30)
    parser.add('--per-plant', 'leaves per plant, which share traits', 1)
    parser.add('--size', 'image size in pixels', 224)
    parser.share('--seed')
    parser.add('--difference', 'difference between cultivars, 0 to 2', 1.0)
    parser.add('--val-fraction', 'validation share', 0.2)
    parser.add('--test-fraction', 'test share', 0.2)
    parser.add('--jobs', 'parallel processes', 1)


def main(args):
    from mmclca.datasets.synthetic_leaves.data_set import draw_data_set

    options = dict(vars(args))
    out, jobs = options.pop('out'), options.pop('jobs')
    images = draw_data_set(out, options, jobs)
    counts = Counter(images.splits).items()
    splits = ', '.join(f'{number} {split}' for split, number in counts)
    print_safe(f'Data       {len(images.classes)} classes, images: {splits}')
    print_safe(f'Saved      {out}')
