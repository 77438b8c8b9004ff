# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a model costs: ``python tools/analysis_tools/get_flops.py CONFIG``."""

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options


def parse_args():
    parser = cli.Parser(
        description='Multiply-accumulates (attention and LayerNorm included, '
        'activations not), parameters and tokens of a model for one image'
    )
    parser.add('config', 'path or name of a config; `model` is enough')
    parser.add(
        '--shape',
        'size of the image in pixels; one number for a square one (default: '
        'img_size of the backbone)',
        nargs='+',
        type=int,
        metavar=('HEIGHT', 'WIDTH'),
    )
    parser.flag(
        '--json',
        'print one line of JSON instead of a table: flops '
        '(multiply-accumulates), params, tokens (those that leave each '
        'layer, before the cache recovers), distances (multiply-accumulates '
        'of distances between tokens, which are not in flops) and more',
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    if args.shape and (len(args.shape) > 2 or min(args.shape) < 1):
        parser.error(f'--shape {args.shape}: one or two positive numbers')
    return args


main = cli.command('get_flops', parse_args)

if __name__ == '__main__':
    cli.run(main)
