# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How fast models with token reduction are, and what their FLOPs promise.

Any configs, and any list of architectures, methods, keep rates and image
sizes, interleaved with timm's plain ViT of the same size or with another
baseline: multiply-accumulates, speed, efficiency (the speed-up as a share of
the ratio of multiply-accumulates) and peak memory, of inference or of a
training step. Of several image sizes it says how time, memory and
multiply-accumulates grow with the pixels.
"""

import argparse

from mmclca import cli
from mmclca.cli.arguments import keep_rate, positive, whole
from mmclca.cli.choices import (
    AMP,
    ARCHS,
    CUDA_GRAPHS,
    METHODS,
    MMPRETRAIN,
    PLAIN,
)

COMPILE_MODES = ('default', *CUDA_GRAPHS, 'max-autotune-no-cudagraphs')


def parse_args():
    parser = cli.Parser(description=__doc__.partition('\n\n')[2])
    add_models(parser)
    add_setting(parser)
    add_rounds(parser)
    args = parser.parse_args()
    fill_in(args)
    from mmclca.cli.commands.throughput import check

    check(parser, args)
    return args


def add_models(parser):
    parser.add(
        '--baseline',
        'config of the model that all others are compared with, and that has '
        "the --methods (default: timm's plain ViT of their size)",
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
        choices=ARCHS,
        metavar='NAME',
    )
    parser.add(
        '--img-size',
        'sides of images for --arch; of several, how time grows with them',
        [224],
        nargs='+',
        type=positive,
        metavar='PIXELS',
    )
    parser.add(
        '--methods',
        'of %(choices)s, at the sizes of --arch and of --configs; '
        f'{MMPRETRAIN} is its plain ViT, {PLAIN} the TokenReductionViT '
        'without a reducer (default: all; with --configs these two; with '
        '--baseline none)',
        nargs='*',
        choices=[MMPRETRAIN, PLAIN, *METHODS],
        metavar='NAME',
    )
    rates = [1.0, 0.7, 0.5, 0.25, 0.1]
    more = dict(nargs='+', type=keep_rate, metavar='RATE')
    parser.add('--keep-rates', 'of --methods', rates, **more)
    meaning = '--methods with cache and CLA head'
    parser.add('--clca', meaning, 'both', choices=['no', 'yes', 'both'])
    parser.flag(
        '--fuse',
        'measure models with parallel branches or affine maps a second '
        'time, with these joined into plain layers',
    )


def add_setting(parser):
    parser.add('--device', 'cpu, cuda or cuda:1', 'cpu')
    parser.add('--threads', 'threads on the CPU', 1, type=positive)
    parser.add('--batch', 'images in a batch', [8], type=positive, nargs='+')
    parser.flag(
        '--cpu-time',
        'count the time of the process on the CPU, with one thread: on a busy '
        'machine it is steadier than that of the clock',
    )
    parser.add(
        '--amp', 'automatic mixed precision (default: float32)', choices=AMP
    )
    parser.add(
        '--compile',
        'compile the models with torch.compile; MODE is one of %(choices)s '
        '(default: eager)',
        nargs='?',
        const='default',
        choices=COMPILE_MODES,
        metavar='MODE',
    )
    parser.add(
        '--backend',
        'onnx: measure each model in ONNX Runtime, too, in float32 and with '
        '8-bit matrix products; the baseline stays in PyTorch',
        'pytorch',
        choices=['pytorch', 'onnx'],
    )
    parser.flag('--train', 'time training steps: forward, backward and AdamW')


def add_rounds(parser):
    parser.add('--rounds', 'timed passes of each model', 7, type=positive)
    before = 'passes of each model before these'
    parser.add('--warm-up', before, 2, type=whole)
    parser.add_argument(
        '--memory',
        action=argparse.BooleanOptionalAction,
        help='measure the peak of memory too; not with --compile on a CPU, '
        f'nor with --compile {" or ".join(CUDA_GRAPHS)} on a GPU '
        '(default: with --train, where it can be)',
    )
    parser.add(
        '--at-once',
        'models in memory, interleaved with the baseline (default: '
        '%(default)s); 1 is the steadiest and slowest',
        6,
        type=positive,
    )
    parser.flag(
        '--profile', 'tell as well where the time of a forward pass goes'
    )
    parser.add(
        '--out',
        'write PREFIX.md, PREFIX.csv, PREFIX.json and PREFIX.png',
        metavar='PREFIX',
    )


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
