# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Name what is on photographs: ``mmclca predict MODEL PHOTOGRAPHS``."""

from pathlib import Path

from .. import Parser, command
from ..arguments import check_file, file_named, positive
from .model import add_device, add_folder, model_of, threshold_of


def parse_args():
    parser = Parser(
        description='Name what is on photographs by a model that fit wrote, '
        'and say what is of no class that it knows'
    )
    add_folder(parser)
    images = 'files, folders (with all below them) or patterns'
    parser.add('images', images, nargs='+', metavar='PHOTOGRAPHS')
    parser.add('--topk', 'classes to name for each', 3, type=positive)
    out = 'write the results to a .csv or .json file'
    parser.add('--out', out, type=file_named('.csv', '.json'))
    parser.add(
        '--pictures',
        'draw what the model keeps of each photograph, stage by stage',
        type=Path,
        metavar='DIR',
    )
    parser.add('--batch-size', 'photographs at a time', 32, type=positive)
    add_device(parser)
    parser.set_defaults(config=None, cfg_options={}, tokens=False)
    args = parser.parse_args()
    args.checkpoint = model_of(parser, args.folder)
    args.reject = threshold_of(args.folder)
    if args.out:
        check_file(parser, args.out)
    return args


main = command('predict', parse_args)
