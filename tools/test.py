# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Test a checkpoint: ``python tools/test.py CONFIG CHECKPOINT``."""

from mmclca import cli
from mmclca.cli.arguments import add_run_arguments


def parse_args():
    parser = cli.Parser(description='Test a checkpoint')
    parser.add('config', 'path or name of a config')
    parser.add('checkpoint', 'path or URL of the weights')
    add_run_arguments(parser)
    parser.add('--out', 'write results to FILE', metavar='FILE')
    parser.add(
        '--out-item',
        'what to write (default: pred, the predictions)',
        choices=['metrics', 'pred'],
    )
    parser.add('--show-dir', 'write pictures of predictions')
    parser.flag('--show', 'show predictions in a window')
    parser.add('--interval', 'draw every n-th image', 1)
    parser.add('--wait-time', 'seconds a window stays', 2, type=float)
    parser.flag(
        '--tta',
        "average over augmented views: the config's tta_pipeline and "
        'tta_model, or else the image and its mirror image',
    )
    parser.flag(
        '--fuse',
        'join what need not be computed apart, parallel branches and affine '
        'maps: the same predictions',
    )
    parser.flag('--amp', 'automatic mixed precision')
    args = parser.parse_args()
    if args.out_item and not args.out:
        parser.error('--out-item needs --out FILE')
    return args


main = cli.command('test', parse_args)

if __name__ == '__main__':
    cli.run(main, go_on='the same command tests anew')
