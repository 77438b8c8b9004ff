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
    file_named,
    positive,
)
from mmclca.cli.choices import STAGES

PLACE = 'a folder with a folder a class, or a .txt list of "path label"'


def parse_args():
    parser = cli.Parser(
        description='Find the images of a gallery that look like others, by '
        'the features of a trained classifier. An image never finds itself: '
        'without --queries, the images of the gallery look for each other'
    )
    parser.add('checkpoint', 'weights of a classifier')
    add_config_argument(parser)
    add_places(parser)
    parser.add(
        '--stage',
        'whose output: pre_logits is what the last layer of the head reads, '
        'with CLA its aggregated features; backbone the last CLS',
        'pre_logits',
        choices=STAGES,
    )
    parser.add('--topk', 'images to name', 10, type=positive)
    votes = 'images that vote on the class'
    parser.add('--neighbours', votes, 5, type=positive)
    add_outputs(parser)
    add_model_arguments(parser)
    args = parser.parse_args()
    check(parser, args)
    return args


def add_places(parser):
    parser.add(
        '--gallery',
        f'images to find: {PLACE} (default: the training split of the config)',
        metavar='PLACE',
    )
    parser.add(
        '--index',
        'a gallery that --save-index wrote, in place of --gallery',
        metavar='FILE',
    )
    parser.add(
        '--queries',
        'images to look for, as for --gallery; they need no class (default: '
        'with --gallery or --index, those of the gallery; else the test '
        'split of the config)',
        metavar='PLACE',
    )
    parser.add('--batch-size', 'images at a time', 32, type=positive)


def add_outputs(parser):
    out = 'write the results to a .csv or .json file'
    parser.add('--out', out, type=file_named('.csv', '.json'))
    parser.add(
        '--save-index',
        'write the features of the gallery to a .safetensors file',
        type=file_named('.safetensors'),
        metavar='FILE',
    )
    parser.add(
        '--sheet',
        'draw queries, each with its nearest images below, in blue frames '
        'where they are of its class (if it has none, of the one that is '
        'voted for), else in orange ones',
        type=Path,
        metavar='PICTURE',
    )
    spread = 'how many to draw, evenly spread over all'
    parser.add('--sheet-queries', spread, 8, type=positive)
    nearest = 'nearest images to draw'
    parser.add('--sheet-nearest', nearest, 5, type=positive)


def check(parser, args):
    if args.index and (args.gallery or args.save_index):
        parser.error('--index is a gallery already: leave out the other')
    for path in filter(None, (args.out, args.save_index)):
        check_file(parser, path)


main = cli.command('retrieval', parse_args)

if __name__ == '__main__':
    cli.run(main)
