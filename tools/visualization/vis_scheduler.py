# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The curve of a learning rate: ``python
tools/visualization/vis_scheduler.py CONFIG``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import (
    add_cfg_options,
    add_figure_arguments,
    positive,
)


def parse_args():
    parser = cli.Parser(
        description='Draw how the learning rate (momentum, weight decay) of a '
        'config changes in training, by its own schedulers; no model is '
        'built. Where layers have rates of their own, it is that of a '
        'parameter without a multiplier'
    )
    parser.add('config', 'path or name of a config')
    parser.add(
        '-p --parameter',
        'what to draw',
        'lr',
        choices=['lr', 'momentum', 'wd'],
    )
    parser.add(
        '-d --dataset-size',
        'number of training images; without, the data set is opened and '
        'counted',
        type=positive,
    )
    parser.add(
        '-n --ngpus', 'processes that share the images', 1, type=positive
    )
    parser.add('-s --save-path', 'picture to write', type=Path)
    parser.add(
        '--log-level',
        "of mmengine's logger",
        'WARNING',
        choices=['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'],
    )
    parser.flag('--not-show', 'open no window')
    add_figure_arguments(parser)
    add_cfg_options(parser)
    return parser.parse_args()


main = cli.command('vis_scheduler', parse_args)

if __name__ == '__main__':
    cli.run(main)
