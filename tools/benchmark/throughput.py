# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How fast models with token reduction are, and what their FLOPs promise.

Any configs, and any list of architectures, methods, keep rates and image
sizes, interleaved with timm's plain ViT of the same size or with another
baseline: multiply-accumulates, speed, efficiency (the speed-up as a share of
the ratio of multiply-accumulates) and peak memory, of inference or of a
training step.
"""

from mmclca import cli
from mmclca.cli.arguments import keep_rate, positive
from mmclca.cli.benchmark import (
    ARCH,
    add_clca,
    add_img_size,
    add_rounds,
    add_setting,
)
from mmclca.cli.choices import METHODS, MMPRETRAIN, PLAIN


def parse_args():
    parser = cli.Parser(description=__doc__.partition('\n\n')[2])
    add_models(parser)
    add_setting(parser, batch=[8], nargs='+')
    add_rounds(parser, rounds=7, memory='with --train')
    parser.add(
        '--at-once',
        'models in memory, interleaved with the baseline (default: '
        '%(default)s); 1 is the steadiest and slowest',
        6,
        type=positive,
    )
    parser.flag(
        '--fuse',
        'measure models with parallel branches or affine maps a second '
        'time, with these joined into plain layers',
    )
    parser.flag(
        '--profile', 'tell as well where the time of a forward pass goes'
    )
    args = parser.parse_args()
    fill_in(args)
    from mmclca.cli.commands.throughput import check

    check(parser, args)
    return args


def add_models(parser):
    parser.add(
        '--baseline',
        'config file of the model that all others are compared with, and '
        "that has the --methods (default: timm's plain ViT of their size)",
        metavar='FILE',
    )
    parser.add(
        '--configs',
        'config files of classifiers; without --baseline over a '
        'VisionTransformer or a TokenReductionViT',
        [],
        nargs='+',
        metavar='FILE',
    )
    parser.add(
        '--arch',
        'of VisionTransformer in MMPretrain (default: deit-small, which is '
        'ViT-S/16; small is another one, of 8 layers; with --configs none)',
        nargs='+',
        **ARCH,
    )
    add_img_size(parser, [224], 'sides of images for --arch')
    names = [MMPRETRAIN, PLAIN, *METHODS]
    parser.add(
        '--methods',
        'of %(choices)s, at the sizes of --arch and of --configs; '
        f'{MMPRETRAIN} is its plain ViT, {PLAIN} the TokenReductionViT '
        'without a reducer (default: all; with --configs these two; with '
        '--baseline none)',
        nargs='*',
        choices=names,
        metavar='NAME',
    )
    rates = [1.0, 0.7, 0.5, 0.25, 0.1]
    more = dict(nargs='+', type=keep_rate, metavar='RATE')
    parser.add('--keep-rates', 'of --methods', rates, **more)
    add_clca(parser, default='both')


def fill_in(args):
    """Defaults that depend on other options."""
    if args.arch is None:
        given = args.configs or args.baseline
        args.arch = [] if given else ['deit-small']
    if args.methods is None:
        methods = () if args.configs else METHODS
        names = [MMPRETRAIN, PLAIN, *methods]
        args.methods = [] if args.baseline else names


main = cli.command('throughput', parse_args)

if __name__ == '__main__':
    cli.run(main)
