# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Test a checkpoint: ``python tools/test.py CONFIG CHECKPOINT``."""

from mmclca import cli
from mmclca.cli.arguments import add_run_arguments


def parse_args():
    parser = cli.Parser(description='Test a checkpoint')
    parser.add_argument('config', help='path or name of a config')
    parser.add_argument('checkpoint', help='path or URL of the weights')
    add_run_arguments(parser)
    parser.add_argument('--out', metavar='FILE', help='write results to FILE')
    parser.add_argument(
        '--out-item',
        choices=['metrics', 'pred'],
        help='what to write (default: pred, the predictions)',
    )
    parser.add_argument('--show-dir', help='write pictures of predictions')
    parser.add_argument(
        '--show', action='store_true', help='show predictions in a window'
    )
    parser.add_argument(
        '--interval', type=int, default=1, help='draw every n-th image'
    )
    parser.add_argument(
        '--wait-time', type=float, default=2, help='seconds a window stays'
    )
    parser.add_argument(
        '--tta',
        action='store_true',
        help="average over augmented views: the config's tta_pipeline and "
        'tta_model, or else the image and its mirror image',
    )
    parser.add_argument(
        '--amp', action='store_true', help='automatic mixed precision'
    )
    args = parser.parse_args()
    if args.out_item and not args.out:
        parser.error('--out-item needs --out FILE')
    return args


def main():
    args = parse_args()
    from mmclca.cli.commands import test

    test.main(args)


if __name__ == '__main__':
    cli.run(main, go_on='the same command tests anew')
