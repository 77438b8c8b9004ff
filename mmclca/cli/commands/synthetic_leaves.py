# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Generate leaves of cultivars with equal color and size that differ in
outline, teeth and veins.

python tools/dataset_converters/synthetic_leaves.py data/synthetic_leaves

The same options give identical files with any number of jobs.
"""

from collections import Counter
from pathlib import Path

from mmclca.utils.messages import print_safe

from .. import Parser, usage_errors
from ..arguments import positive
from ..packages import datasets


def parse_args():
    parser = Parser(__doc__)
    parser.add('out', 'output folder', type=Path)
    parser.add('--classes', 'cultivars (classes)', 8)
    parser.add('--species', 'species, listed in levels.csv', 1, type=positive)
    parser.add('--per-class', 'images per class over all splits', 30)
    parser.add('--size', 'image size in pixels', 224)
    parser.share('--seed')
    parser.add('--difference', 'difference between cultivars, 0 to 2', 1.0)
    parser.add('--val-fraction', 'validation share', 0.2)
    parser.add('--test-fraction', 'test share', 0.2)
    parser.add('--jobs', 'parallel processes', 1)
    return parser.parse_args()


def main(args):
    options = dict(vars(args))
    out, jobs = options.pop('out'), options.pop('jobs')
    with usage_errors(out):
        images = datasets.synthetic_leaves.data_set.draw_data_set(
            out, options, jobs
        )
    counts = Counter(images.splits).items()
    listed = ', '.join(f'{number} {split}' for split, number in counts)
    print_safe(f'Data       {len(images.classes)} classes, images: {listed}')
    print_safe(f'Saved      {out}')
