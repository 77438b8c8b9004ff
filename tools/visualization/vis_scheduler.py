# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The curve of a learning rate: ``python
tools/visualization/vis_scheduler.py CONFIG``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options, add_figure_arguments


def parse_args():
    parser = cli.Parser(
        description='Draw how the learning rate (momentum, weight decay) of a '
        'config changes in training, by its own schedulers; no model is '
        'built. Where layers have rates of their own, it is that of a '
        'parameter without a multiplier'
    )
    parser.add_argument('config', help='path or name of a config')
    parser.add_argument(
        '-p',
        '--parameter',
        choices=['lr', 'momentum', 'wd'],
        default='lr',
        help='what to draw (default: %(default)s)',
    )
    parser.add_argument(
        '-d',
        '--dataset-size',
        type=int,
        help='number of training images; without, the data set is opened and '
        'counted',
    )
    parser.add_argument(
        '-n',
        '--ngpus',
        type=int,
        default=1,
        help='processes that share the images (default: %(default)s)',
    )
    parser.add_argument(
        '-s', '--save-path', type=Path, help='picture to write'
    )
    parser.add_argument(
        '--log-level',
        default='WARNING',
        choices=['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'],
        help="of mmengine's logger (default: %(default)s)",
    )
    parser.add_argument(
        '--not-show', action='store_true', help='open no window'
    )
    add_figure_arguments(parser)
    add_cfg_options(parser)
    args = parser.parse_args()
    if args.ngpus < 1 or (args.dataset_size or 1) < 1:
        parser.error('--ngpus and --dataset-size must be 1 or more')
    return args


def main():
    args = parse_args()
    from mmclca.cli.commands import vis_scheduler

    vis_scheduler.main(args)


if __name__ == '__main__':
    cli.run(main)
