# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Look at a data set: ``python tools/visualization/browse_dataset.py
CONFIG``."""

import sys
from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options

MODES = ('original', 'transformed', 'concat', 'pipeline')


def parse_args():
    parser = cli.Parser(
        description='Show the images of a data set with their classes, as '
        'they are on disk and as the steps of the pipeline make them'
    )
    parser.add_argument('config', help='path or name of a config')
    parser.add_argument(
        '-o',
        '--output-dir',
        type=Path,
        help='folder to write pictures to; needed where there is no display',
    )
    parser.add_argument(
        '--not-show', action='store_true', help='open no window'
    )
    parser.add_argument(
        '-p',
        '--phase',
        choices=['train', 'test', 'val'],
        default='train',
        help='which data set (default: %(default)s)',
    )
    parser.add_argument(
        '-n',
        '--show-number',
        type=int,
        default=sys.maxsize,
        help='images to show (default: all)',
    )
    parser.add_argument(
        '-i',
        '--show-interval',
        type=float,
        default=2,
        help='seconds that a window stays (default: %(default)s)',
    )
    parser.add_argument(
        '-m',
        '--mode',
        choices=MODES,
        default='transformed',
        help='"original": from disk; "transformed": as the model gets it, '
        'before it is normalized; "concat": both; "pipeline": after every '
        'step (default: %(default)s)',
    )
    parser.add_argument(
        '-r',
        '--rescale-factor',
        type=float,
        default=1.0,
        help='of the size at which images are drawn, 320 px high by default',
    )
    parser.add_argument(
        '-c',
        '--channel-order',
        choices=['BGR', 'RGB'],
        default='BGR',
        help='of the images in the pipeline (default: %(default)s)',
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    if args.show_number < 1 or args.rescale_factor <= 0:
        parser.error('--show-number and --rescale-factor must be above 0')
    if not args.output_dir:
        check_window(parser, args.not_show)
    return args


def check_window(parser, not_show):
    from mmclca.visualization.figure_files import can_show

    if not_show or not can_show():
        parser.error('no window to draw in: give --output-dir FOLDER')


def main():
    args = parse_args()
    from mmclca.cli.commands import browse_dataset

    browse_dataset.main(args)


if __name__ == '__main__':
    cli.run(main)
