# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw leaf cultivars, alike in colour and size, that differ in outline, teeth
and veins.

python tools/dataset_converters/synthetic_leaves.py data/synthetic_leaves

The classes differ in shape alone: outline, teeth and veins. The same options
give the same files, byte for byte, with any number of jobs.
"""

from collections import Counter
from pathlib import Path

from mmclca.utils.messages import say

from .. import Parser, plain_errors
from ..arguments import positive
from ..packages import datasets


def parse_args():
    parser = Parser(__doc__)
    parser.add('out', 'folder to make', type=Path)
    parser.add('--classes', 'cultivars to draw', 8)
    parser.add('--species', 'of these, see levels.csv', 1, type=positive)
    parser.add('--per-class', 'images a class, all splits together', 30)
    parser.add('--size', 'pixels', 224)
    parser.add('--seed', 'of the cultivars and their leaves', 0)
    parser.add('--difference', 'distance between the cultivars, 0 to 2', 1.0)
    parser.add('--val-fraction', 'share that is validated with', 0.2)
    parser.add('--test-fraction', 'share that is tested with', 0.2)
    parser.add('--jobs', 'processes', 1)
    return parser.parse_args()


def main(args):
    options = dict(vars(args))
    out, jobs = options.pop('out'), options.pop('jobs')
    with plain_errors(out):
        images = datasets.synthetic_leaves.data_set.draw_data_set(
            out, options, jobs
        )
    counts = Counter(images.splits).items()
    listed = ', '.join(f'{number} {split}' for split, number in counts)
    say(f'Data       {len(images.classes)} classes, images: {listed}')
    say(f'Saved      {out}')
