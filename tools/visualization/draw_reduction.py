# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw which patches each stage keeps, merges or mixes."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import (
    WEIGHTS,
    add_cfg_options,
    add_leaves,
    is_weights,
)

PICTURES = ('.jpeg', '.jpg', '.pdf', '.png', '.svg', '.webp')


def parse_args():
    parser = cli.Parser(
        description='Draw a row an image: the image, then each stage. '
        'A legend says what became of the patches'
    )
    parser.add('config', 'path or name of a config with a reducer')
    parser.add(
        'files',
        f'weights ({" ".join(WEIGHTS)} or an address with ://; without, '
        'they are random), then images',
        nargs='*',
        metavar='[CHECKPOINT] IMAGE',
    )
    parser.add(
        '--pretrained',
        'weights that a training begins with, in place of a trained '
        'CHECKPOINT: what is missing, head and reducer, stays random',
        metavar='FILE',
    )
    add_leaves(parser)
    parser.add('--seed', 'of leaves and random weights', 0)
    parser.add(
        '--out',
        f'picture to write ({" ".join(PICTURES)})',
        type=Path,
        required=True,
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    first = args.files[0] if args.files else ''
    named = '://' in first or is_weights(first)
    args.checkpoint = args.files.pop(0) if named else None
    if args.checkpoint and args.pretrained:
        parser.error('a checkpoint and --pretrained: leave one out')
    if args.leaves < 0 or not (args.files or args.leaves):
        parser.error(
            'nothing to draw: name images, or give --leaves 1 or more'
        )
    if args.out.suffix.lower() not in PICTURES:
        parser.error(f'--out {args.out}: must end in {" ".join(PICTURES)}')
    return args


main = cli.command('draw_reduction', parse_args)

if __name__ == '__main__':
    cli.run(main)
