# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train a model: ``python tools/train.py CONFIG``."""

from mmclca import cli
from mmclca.cli.arguments import add_run_arguments


def parse_args():
    parser = cli.Parser(description='Train a model')
    parser.add('config', 'path or name of a config')
    add_run_arguments(parser)
    parser.add(
        '--resume',
        'go on from a checkpoint (default: the newest whole one of the work '
        'dir)',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
    )
    parser.flag('--no-validate', 'do not validate')
    parser.flag(
        '--auto-scale-lr',
        "scale the learning rate from the config's "
        'auto_scale_lr.base_batch_size to the batch size over all processes',
    )
    parser.flag(
        '--no-persistent-workers',
        'start the workers of the data loaders anew in each epoch',
    )
    parser.add(
        '--amp',
        'train in automatic mixed precision (default: fp16, with a dynamic '
        'scale of the loss; bf16 needs none)',
        nargs='?',
        const='fp16',
        choices=['fp16', 'bf16'],
    )
    return parser.parse_args()


main = cli.command('train', parse_args)

if __name__ == '__main__':
    cli.run(main, go_on='the same command with --resume goes on')
