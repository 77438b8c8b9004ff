# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train as tools/train.py does, by the clock.

python tools/benchmark/epoch_time.py

Seconds from the start of the first epoch to the end of the test that follows
the last one, seconds of each epoch, images per second, peak memory. Without
options this is the cell of the CLCA paper on Cotton80: ViT-B/16, 448 px, keep
rate 0.1, 240 images, 50 epochs, one test on 240; leaves of that many are
drawn, and the weights are random. On a GPU it trains in bf16.
"""

import argparse
from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options, positive, whole
from mmclca.cli.choices import DEEP_ARCHS

ROOT = Path(__file__).resolve().parents[2]
DRAW = ROOT / 'tools/dataset_converters/synthetic_leaves.py'
CONFIG = 'clca-evit-kr10_deit3-base-p16_1xb32-50e_cotton80-448px.py'


def parse_args():
    parser = cli.Parser(
        description=__doc__.partition('\n\n')[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add(
        'config',
        'path of the config (default: that cell)',
        str(ROOT / 'configs/clca' / CONFIG),
        nargs='?',
    )
    parser.flag(
        '--own-data',
        "use the config's data set; otherwise it has to be of Cotton80, for "
        'which leaves are drawn',
    )
    parser.add(
        '--leaves',
        'where they are, or are drawn (default: data/drawn_cotton80_SIZEpx)',
        metavar='FOLDER',
    )
    side = 'their side in pixels, where they are drawn'
    parser.add('--leaf-size', side, 800, type=positive)
    add_model(parser)
    parser.flag('--no-cache', 'decode in each epoch')
    parser.add('--work-dir', 'folder for results', 'work_dirs/epoch_time')
    add_cfg_options(parser)
    args = parser.parse_args()
    if args.leaves is None:
        args.leaves = f'data/drawn_cotton80_{args.leaf_size}px'
    check(parser, args)
    return args


def check(parser, args):
    """Fill in what depends on the machine; refuse what it cannot do."""
    import torch

    from mmclca.benchmark.checks import check_img_size

    if args.img_size:
        check_img_size(parser, args.img_size)
    on_gpu = torch.cuda.is_available()
    if args.amp is None:
        args.amp = 'bf16' if on_gpu else 'none'
    if args.amp != 'none' and not on_gpu:
        parser.error(f'--amp {args.amp} needs a GPU: without one --amp none')


def add_model(parser):
    parser.add('--epochs', 'epochs of the training', 50, type=positive)
    parser.add(
        '--arch',
        'of VisionTransformer in MMPretrain, one of %(choices)s',
        choices=DEEP_ARCHS,
        metavar='NAME',
    )
    parser.add('--img-size', 'side of an image in pixels', type=positive)
    parser.add(
        '--amp',
        'automatic mixed precision (default: bf16 on a GPU, else none)',
        choices=['none', 'fp16', 'bf16'],
    )
    parser.flag('--compile', 'compile the model')
    parser.add('--workers', 'processes that load (default: 4)', type=whole)


main = cli.command('epoch_time', parse_args, draw=DRAW)

if __name__ == '__main__':
    cli.run(main)
