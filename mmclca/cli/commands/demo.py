# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train, test and draw a small CLCA ViT on synthetic leaves, on a CPU.
Generates leaves of eight cultivars, trains a small ViT that drops half of its
tokens three times, tests the best checkpoint, draws the remaining patches of
four leaves, and prints a table of cost and speed. Every command is printed and
can be run by hand from the project folder.
"""

import json
import os
import shlex
import shutil
import sys
import time
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.files import read_lines

from ..listing import Listing
from ..main import get_main

LISTING = Listing(
    'train and test',
    'train, test and draw a small model on synthetic leaves',
    'start',
)

CONFIG = (
    'configs/clca/'
    'clca-evit-kr50_vit-mini-p14_1xb32-24e_synthetic-leaves-112px.py'
)
DRAWN = ('0', '2', '4', '6')  # classes whose first test leaf is drawn


def add_arguments(parser):
    parser.add(
        '--work-dir',
        'output folder, emptied by the next demo',
        'work_dirs/demo',
    )
    parser.add('--seed', 'random seed of leaves, weights and training', 1)
    parser.add('--per-class', 'leaves per class', 220)
    parser.add(
        '--cfg-options KEY=VALUE',
        'config settings for training and testing',
        [],
        nargs='+',
    )


def make_empty(folder):
    """Empty the folder of an earlier demo; refuse any other folder."""
    mark = folder / 'made_by_demo'
    if folder.exists() and any(folder.iterdir()) and not mark.exists():
        raise Error(
            f'{folder} is not empty and not from an earlier demo; choose '
            'another --work-dir'
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    mark.touch()


def run(tool, arguments):
    """Print a command as users type it, and run it."""
    command = [f'tools/{tool}.py', *map(str, arguments)]
    print(f'\n$ python {shlex.join(command)}', flush=True)
    sys.argv = command
    get_main(Path(tool).name.replace('_', '-'))()


def leaves_to_draw(folder):
    """Return the first test leaf per ``DRAWN`` class."""
    lines = reversed(read_lines(folder / 'test.txt'))
    first = {label: path for path, label in map(str.split, lines)}
    return [folder / first[label] for label in DRAWN]


def main(args):
    from mmengine.config import Config

    from mmclca.model_index import package_root

    start = time.time()
    os.chdir(package_root())
    work_dir = Path(args.work_dir)
    make_empty(work_dir)
    data = Path(Config.fromfile(CONFIG).data_root)
    options = [f'randomness.seed={args.seed}', *args.cfg_options]
    options = ['--work-dir', work_dir, '--cfg-options', *options]
    metrics, picture = work_dir / 'test.json', work_dir / 'kept_patches.png'
    run(
        'dataset_converters/synthetic_leaves',
        f'{data} --size 160 --per-class {args.per_class} --val-fraction 0.15 '
        '--test-fraction 0.15 --jobs 2'.split(),
    )
    run('train', [CONFIG, *options])
    (best,) = work_dir.glob('best_*.pth')
    out = ['--out', metrics, '--out-item', 'metrics']
    run('test', [CONFIG, best, *out, *options])
    leaves = leaves_to_draw(data)
    out = ['--out', picture]
    run('visualization/draw_reduction', [CONFIG, best, *leaves, *out])
    run(
        'benchmark/throughput',
        f'{CONFIG} --methods none --batch 32 --rounds 15'.split(),
    )
    top1 = json.loads(metrics.read_text('utf-8'))['accuracy/top1']
    print(
        f'\ntop-1 {top1:.1f}% (chance level 12.5%), seed {args.seed}, {best}'
    )
    print(f'{picture}\n{time.time() - start:.0f} s in all')
