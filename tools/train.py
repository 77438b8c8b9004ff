# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train a model: ``python tools/train.py CONFIG``."""

from mmclca import cli
from mmclca.cli.arguments import add_run_arguments


def parse_args():
    parser = cli.Parser(description='Train a model')
    parser.add_argument('config', help='path or name of a config')
    add_run_arguments(parser)
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='go on from a checkpoint (default: the newest whole one of '
        'the work dir)',
    )
    parser.add_argument(
        '--no-validate', action='store_true', help='do not validate'
    )
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help="scale the learning rate from the config's "
        'auto_scale_lr.base_batch_size to the batch size over all processes',
    )
    parser.add_argument(
        '--no-persistent-workers',
        action='store_true',
        help='start the workers of the data loaders anew in each epoch',
    )
    parser.add_argument(
        '--amp',
        nargs='?',
        const='fp16',
        choices=['fp16', 'bf16'],
        help='train in automatic mixed precision (default: fp16, with a '
        'dynamic scale of the loss; bf16 needs none)',
    )
    return parser.parse_args()


def main():
    args = parse_args()
    from mmclca.cli.commands import train

    train.main(args)


if __name__ == '__main__':
    cli.run(main, go_on='the same command with --resume goes on')
