# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find the images of a gallery that look like others.

python tools/retrieval.py CKPT --gallery my_leaves/ --queries new_leaves/
"""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import (
    add_config_argument,
    add_model_arguments,
    check_file,
)
from mmclca.cli.choices import STAGES

PLACE = 'a folder with a folder a class, or a .txt list of "path label"'


def parse_args():
    parser = cli.Parser(
        description='Find the images of a gallery that look like others, by '
        'the features of a trained classifier. An image never finds itself: '
        'without --queries, the images of the gallery look for each other'
    )
    parser.add_argument('checkpoint', help='weights of a classifier')
    add_config_argument(parser)
    add_places(parser)
    parser.add_argument(
        '--stage',
        choices=STAGES,
        default='pre_logits',
        help='whose output: pre_logits is what the last layer of the head '
        'reads, with CLA its aggregated features; backbone the last CLS '
        '(default: %(default)s)',
    )
    parser.add_argument(
        '--topk', type=int, default=10, help='images to name (default: 10)'
    )
    parser.add_argument(
        '--neighbours',
        type=int,
        default=5,
        help='images that vote on the class (default: 5)',
    )
    add_outputs(parser)
    add_model_arguments(parser)
    args = parser.parse_args()
    check(parser, args)
    return args


def add_places(parser):
    parser.add_argument(
        '--gallery',
        metavar='PLACE',
        help=f'images to find: {PLACE} (default: the training split of the '
        'config)',
    )
    parser.add_argument(
        '--index',
        metavar='FILE',
        help='a gallery that --save-index wrote, in place of --gallery',
    )
    parser.add_argument(
        '--queries',
        metavar='PLACE',
        help='images to look for, as for --gallery; they need no class '
        '(default: with --gallery or --index, those of the gallery; else the '
        'test split of the config)',
    )
    parser.add_argument(
        '--batch-size', type=int, default=32, help='images at a time'
    )


def add_outputs(parser):
    parser.add_argument(
        '--out', type=Path, help='write the results to a .csv or .json file'
    )
    parser.add_argument(
        '--save-index',
        type=Path,
        metavar='FILE',
        help='write the features of the gallery to a .safetensors file',
    )
    parser.add_argument(
        '--sheet',
        type=Path,
        metavar='PICTURE',
        help='draw queries, each with its nearest images below, in blue '
        'frames where they are of its class (if it has none, of the one that '
        'is voted for), else in orange ones',
    )
    parser.add_argument(
        '--sheet-queries',
        type=int,
        default=8,
        help='how many to draw, evenly spread over all (default: 8)',
    )
    parser.add_argument(
        '--sheet-nearest',
        type=int,
        default=5,
        help='nearest images to draw (default: 5)',
    )


def check(parser, args):
    numbers = 'topk neighbours batch_size sheet_queries sheet_nearest'
    for name in numbers.split():
        if vars(args)[name] < 1:
            flag = name.replace('_', '-')
            parser.error(f'--{flag} must be 1 or more')
    if args.index and (args.gallery or args.save_index):
        parser.error('--index is a gallery already: leave out the other')
    endings = dict(out=('.csv', '.json'), save_index=('.safetensors',))
    for name, allowed in endings.items():
        path = vars(args)[name]
        if path and path.suffix not in allowed:
            parser.error(
                f'{path}: the name must end in {" or ".join(allowed)}'
            )
        if path:
            check_file(parser, path)


def main():
    args = parse_args()
    from mmclca.cli.commands import retrieval

    retrieval.main(args)


if __name__ == '__main__':
    cli.run(main)
