# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Look at a data set: ``python tools/visualization/browse_dataset.py
CONFIG``."""

import sys
from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options, check_window, positive

MODES = ('original', 'transformed', 'concat', 'pipeline')


def parse_args():
    parser = cli.Parser(
        description='Show the images of a data set with their classes, as '
        'they are on disk and as the steps of the pipeline make them'
    )
    parser.add('config', 'path or name of a config')
    parser.add(
        '-o --output-dir',
        'folder to write pictures to; needed where there is no display',
        type=Path,
    )
    parser.flag('--not-show', 'open no window')
    parser.add(
        '-p --phase',
        'which data set',
        'train',
        choices=['train', 'test', 'val'],
    )
    parser.add(
        '-n --show-number',
        'images to show (default: all)',
        sys.maxsize,
        type=positive,
    )
    parser.add(
        '-i --show-interval', 'seconds that a window stays', 2, type=float
    )
    parser.add(
        '-m --mode',
        '"original": from disk; "transformed": as the model gets it, before '
        'it is normalized; "concat": both; "pipeline": after every step',
        'transformed',
        choices=MODES,
    )
    parser.add(
        '-r --rescale-factor',
        'of the size at which images are drawn, 320 px high by default',
        1.0,
    )
    parser.add(
        '-c --channel-order',
        'of the images in the pipeline',
        'BGR',
        choices=['BGR', 'RGB'],
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    if args.rescale_factor <= 0:
        parser.error('--rescale-factor must be above 0')
    if not args.output_dir:
        check_window(parser, 'give --output-dir FOLDER', args.not_show)
    return args


main = cli.command('browse_dataset', parse_args)

if __name__ == '__main__':
    cli.run(main)
